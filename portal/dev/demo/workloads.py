"""The workloads of the demo's month, and the pods that they request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes draws them
_POD: Final = GroupVersionKind(kind="Pod")
_PODS: Final = GroupVersionResource(resource="pods")
_CONTROLLER: Final = "system:serviceaccount:kube-system:{}-controller"
_GROUPS: Final = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """So many pods of one kind; ``resources`` are those of its container, ``labels`` beside app.

    ``replicas`` grow evenly from the first number to the second; a ``job`` runs at its ``hours``.
    """

    cluster: str
    namespace: str
    name: str
    resources: Mapping[str, Mapping[str, str]]
    replicas: tuple[int, int] = (1, 1)
    priority: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    hours: tuple[int, ...] = ()
    user: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Cluster and namespace."""
        return self.cluster, self.namespace

    @property
    def asks_as(self) -> str:
        """Who asks for its pods."""
        return self.user or _CONTROLLER.format("job" if self.hours else "replicaset")

    def pod(self, made: Random) -> dict[str, Any]:
        """A new pod, as its controller writes it."""
        owner = f"{self.name}-{_draw(made, 9)}"
        name = f"{owner}-{_draw(made, 5)}"
        metadata: dict[str, Any] = {
            "name": self.name if self.user else name,
            "namespace": self.namespace,
            "uid": _uid(made),
            "labels": {"app": self.name, **self.labels},
        }
        if not self.user:
            metadata["generateName"] = f"{owner}-"
            metadata["ownerReferences"] = [self._owner(owner, made)]
        container = {
            "name": self.name,
            "image": f"registry.example/{self.namespace}/{self.name}:1.{made.randint(4, 40)}",
            "resources": {words: dict(each) for words, each in self.resources.items()},
        }
        spec: dict[str, Any] = {"containers": [container]}
        if self.priority:
            spec["priorityClassName"] = self.priority
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _owner(self, name: str, made: Random) -> dict[str, Any]:
        kind, group = ("Job", "batch/v1") if self.hours else ("ReplicaSet", "apps/v1")
        return {
            "apiVersion": group,
            "kind": kind,
            "name": name,
            "uid": _uid(made),
            "controller": True,
        }

    def request(
        self, pod: Mapping[str, Any], made: Random, *, dry_run: bool = False
    ) -> AdmissionRequest:
        """Give the request by which a pod of it is asked for."""
        return AdmissionRequest(
            uid=_uid(made),
            kind=_POD,
            resource=_PODS,
            name=str(pod["metadata"]["name"]),
            namespace=self.namespace,
            operation=Operation.CREATE,
            user=self.asks_as,
            groups=("system:authenticated",) if self.user else _GROUPS,
            object=pod,
            dry_run=dry_run,
            is_plain=True,
        )


def _draw(made: Random, number: int) -> str:
    return "".join(made.choices(_SUFFIX, k=number))


def _uid(made: Random) -> str:
    text = f"{made.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def asking(
    cpu: str = "", memory: str = "", *, cpu_limit: str = "", memory_limit: str = ""
) -> dict[str, dict[str, str]]:
    """Requests and limits of a container; what is empty is not said."""
    sides = {
        "requests": {"cpu": cpu, "memory": memory},
        "limits": {"cpu": cpu_limit, "memory": memory_limit},
    }
    filled = {side: {n: a for n, a in each.items() if a} for side, each in sides.items()}
    return {side: each for side, each in filled.items() if each}
