"""What a cluster does while people look at the portal: its API server asks for decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.browser.visitor import Visitor


def review_pod(
    visitor: Visitor,
    world: Mapping[str, Any],
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None = None,
    phases: Sequence[str] = ("mutate",),
) -> None:
    """Ask for decisions about a pod, as the API server of ``demo`` does."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }
    request = {
        "uid": name,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "name": name,
        "operation": "CREATE",
        "userInfo": {"username": "ada"},
        "object": pod,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    for phase in phases:
        answer = visitor.context.request.post(
            f"/admission/demo/{phase}",
            data=review,
            headers={"Authorization": f"Bearer {world['credential']}"},
        )
        assert answer.ok
