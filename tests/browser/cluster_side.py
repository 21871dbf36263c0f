"""What a cluster does while people look at the portal: its API server asks for decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.browser.visitor import Visitor


def review_pod(
    visitor: Visitor,
    world: Mapping[str, Any],
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Ask for a decision about a pod, as the API server of ``demo`` does."""
    _ask(visitor, world, _request(name, namespace, labels or {}), "mutate")


def review_large_pod(
    visitor: Visitor, world: Mapping[str, Any], *, name: str, namespace: str, memory: str
) -> None:
    """Make both calls about a pod with a memory limit, in the cluster that ``world`` names."""
    request = _request(name, namespace, {})
    amounts = {"memory": memory}
    resources = {"requests": amounts, "limits": amounts}
    request["object"]["spec"]["containers"][0]["resources"] = resources
    for phase in ("mutate", "validate"):
        _ask(visitor, world, request, phase)


def review_pod_twice(
    visitor: Visitor, world: Mapping[str, Any], *, name: str, namespace: str
) -> None:
    """Make both calls of one request."""
    for phase in ("mutate", "validate"):
        _ask(visitor, world, _request(name, namespace, {}), phase)


def _request(name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }
    return {
        "uid": name,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "name": name,
        "operation": "CREATE",
        "userInfo": {"username": "ada"},
        "object": pod,
    }


def _ask(visitor: Visitor, world: Mapping[str, Any], request: dict[str, Any], phase: str) -> None:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = visitor.context.request.post(
        f"/admission/{world.get('cluster', 'demo')}/{phase}",
        data=review,
        headers={"Authorization": f"Bearer {world['credential']}"},
    )
    assert answer.ok
