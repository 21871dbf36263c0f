"""``python -m tests.cluster.version_cases``: asks every API server here what versions answer apart.

Each case shows one difference between versions. The answers are kept beside the other golden cases,
so that tests replay them without a server.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.api_client import ApiClient
from tests.cluster.binaries import RELEASES, find
from tests.cluster.build import UNAVAILABLE, say
from tests.cluster.evaluation import Found, ask
from tests.cluster.golden import keep_as
from tests.cluster.servers import cluster
from tests.cluster.worlds import Barrier, World, prepare_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.binaries import Binaries
    from tests.cluster.cases import Case

_IMAGE: Final = "registry.invalid/app:1"
_OWN_CPU: Final = ["spec", "containers", 1, "resources", "requests", "cpu"]


def _container(name: str = "c", **resources: Any) -> dict[str, Any]:
    always = {"restartPolicy": resources.pop("restart")} if "restart" in resources else {}
    return {"name": name, "image": _IMAGE, "resources": resources, **always}


def _pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p"}
    spec = {"containers": list(containers), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _quota(used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    hard = spec["hard"]
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": spec,
        "status": {"hard": hard, "used": used or dict.fromkeys(hard, "0")},
    }


def _range(item_type: str, **item: Any) -> dict[str, Any]:
    spec = {"limits": [{"type": item_type, **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}, "spec": spec}


def _create(posted: dict[str, Any], *policies: dict[str, Any]) -> Case:
    return {
        "operation": "CREATE",
        "posted": posted,
        "dryRun": False,
        "policies": list(policies),
    }


def _reported(name: str, **found: Any) -> dict[str, Any]:
    """The status of a container: ``requests``, ``limits`` and ``allocated`` as far as given."""
    status = {"name": name, "image": _IMAGE, "imageID": "", "ready": True, "restartCount": 0}
    resources = {side: found[side] for side in ("requests", "limits") if side in found}
    if resources:
        status["resources"] = resources
    if "allocated" in found:
        status["allocatedResources"] = found["allocated"]
    return status


def _resize(before: dict[str, Any], cpu: str, *policies: dict[str, Any]) -> Case:
    """Another cpu request for the second container."""
    return {
        "operation": "UPDATE",
        "before": before,
        "changes": [[_OWN_CPU, cpu]],
        "subResource": "resize",
        "dryRun": True,
        "policies": list(policies),
    }


def _two(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A running pod whose two containers ask for one cpu each."""
    one = {"requests": {"cpu": "1", "memory": "1Mi"}}
    return {**_pod(_container("a", **one), _container("b", **one), **spec), "status": status}


_FULL: Final = {"cpu": "3"}
_HALF: Final = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}}
_CLAIM: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "r"},
    "spec": {
        "devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "gpu", "count": 2}}]}
    },
}
_DEVICES: Final = "requests.deviceclass.resource.kubernetes.io/gpu"
CASES: Final[dict[str, Case]] = {
    "requests-alone-are-completed": _create(
        _pod(_container(**_HALF), resources={"requests": {"cpu": "3"}}),
        _quota(hard={"requests.cpu": "9", "requests.memory": "9Gi"}),
    ),
    "limits-are-completed": _create(
        _pod(_container(**_HALF), resources={"requests": {"cpu": "3"}}),
        _quota(hard={"limits.cpu": "2"}),
    ),
    "limits-are-the-sum": _create(
        _pod(
            _container("a", **_HALF),
            _container("b", **_HALF),
            initContainers=[_container("i", limits={"cpu": "1"})],
            resources={"requests": {"cpu": "2"}},
        ),
        _range("Pod", max={"cpu": "3"}),
    ),
    "no-limit-where-one-container-has-none": _create(
        _pod(_container("a", **_HALF), _container("b"), resources={"requests": {"cpu": "3"}}),
        _quota(hard={"limits.cpu": "9"}),
    ),
    "completed-after-limit-ranges": _create(
        _pod(_container(), resources={"limits": {"cpu": "2"}}),
        _range("Container", default={"cpu": "1"}, defaultRequest={"cpu": "250m"}),
        _quota(hard={"requests.cpu": "1"}),
    ),
    "pages-are-completed-after-limit-ranges": _create(
        _pod(_container(), resources={"limits": {"cpu": "2", "memory": "1Gi"}}),
        _range("Container", default={"cpu": "1", "hugepages-2Mi": "4Mi"}),
        _quota(hard={"hugepages-2Mi": "2Mi"}),
    ),
    "empty-resources-leave-the-class": _create(
        _pod(_container(**_HALF), resources={}),
        _quota(hard={"pods": "0"}, scopes=["BestEffort"]),
    ),
    "class-of-a-pod-without-limits": _create(
        _pod(
            _container(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1"}),
            resources={"requests": {"cpu": "1"}},
        ),
        _quota(hard={"pods": "0"}, scopes=["NotBestEffort"]),
    ),
    "sums-are-compared": _resize(
        _two(
            {
                "containerStatuses": [
                    _reported("a", requests={"cpu": "2"}),
                    _reported("b", requests={"cpu": "1"}),
                ]
            }
        ),
        "2",
        _quota(hard={"requests.cpu": "3"}, used={"requests.cpu": "3"}),
    ),
    "granted-counts-without-resources": _resize(
        _two(
            {
                "containerStatuses": [
                    _reported("a", allocated=_FULL),
                    _reported("b", allocated={"cpu": "1"}),
                ]
            }
        ),
        "2",
        _quota(hard={"requests.cpu": "4"}, used={"requests.cpu": "4"}),
    ),
    "init-containers-report": _resize(
        _two(
            {"initContainerStatuses": [_reported("i", requests={"cpu": "9"})]},
            initContainers=[_container("i", requests={"cpu": "1", "memory": "1Mi"})],
        ),
        "2",
        _quota(hard={"requests.cpu": "2"}, used={"requests.cpu": "2"}),
    ),
    "infeasible-resize": _resize(
        _two(
            {
                "containerStatuses": [
                    _reported("a", requests={"cpu": "1"}, allocated={"cpu": "1"})
                ],
                "conditions": [
                    {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
                ],
            }
        ),
        "5",
        _quota(hard={"requests.cpu": "2"}, used={"requests.cpu": "2"}),
    ),
    "pod-level-is-completed-by-a-resize": _resize(
        _two({}, resources={"requests": {"cpu": "3"}}),
        "2",
        _quota(hard={"requests.cpu": "9", "requests.memory": "9Mi"}),
    ),
    "devices-are-extended-resources": _create(
        copy.deepcopy(_CLAIM),
        _quota(hard={"count/resourceclaims.resource.k8s.io": "5", _DEVICES: "1"}),
    ),
}
"""What differs between some of the versions, and close relatives that do not."""
INVALID: Final = {"pod-level-is-completed-by-a-resize": ("1.35",)}
"""Versions in which API validation refuses a case, before any policy."""


def answers(binaries: Binaries, version: str) -> Iterator[tuple[str, Found]]:
    """Ask one API server all cases, each in its own namespace."""
    with cluster(binaries) as made, contextlib.closing(ApiClient(made)) as api:
        prepare_cluster(api)
        for name, case in CASES.items():
            if version not in INVALID.get(name, ()):
                yield name, _answer(api, name, {**case, "kubernetesVersion": version})


def _answer(api: ApiClient, name: str, case: Case) -> Found:
    world = World(api, name)
    before = [copy.deepcopy(case["before"])] if "before" in case else []
    world.make(copy.deepcopy(case["policies"]), before)
    Barrier(api).wait()
    assert not world.refused, world.refused
    answer = ask(world, copy.deepcopy({**case, "policies": []}))
    assert answer is not None, case
    return Found(*answer)


def main() -> int:
    """Keep the answers of all servers here; returns 1 for differences, 3 without a server."""
    found = {version: binaries for version in RELEASES if (binaries := find(version))}
    if not found:
        say("NO API SERVER HERE: run python -m tests.cluster.build 1.35 1.36 1.37")
        return UNAVAILABLE
    differences = 0
    for version, binaries in found.items():
        for name, (case, observed, verdict) in answers(binaries, version):
            keep_as(f"version-{name}-{version}", case, observed)
            differences += bool(verdict.differences)
            say(f"{version} {name}: {observed.code} {observed.message}")
            for mark, server, engine in verdict.differences:
                say(f"  {mark}\n    server: {server}\n    engine: {engine}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
