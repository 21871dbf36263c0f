"""Workload, equal pods of the demo: replicas, priority, labels, hours; Pod and AdmissionRequest."""

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
_CONTROLLER_GROUPS: Final = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Equal pods with one container; ``labels`` are those beside ``app``.

    ``replicas`` grow evenly from the first number to the second. With ``hours`` it is a job that
    runs then; with ``user`` a person creates its pod by hand. Pods of one ``template_hash`` belong
    to one ReplicaSet; without one each pod has its own.
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
    template_hash: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Cluster and namespace."""
        return self.cluster, self.namespace

    @property
    def requester(self) -> str:
        """The user who creates its pods."""
        return self.user or _CONTROLLER.format("job" if self.hours else "replicaset")

    def pod(self, random: Random) -> dict[str, Any]:
        """A new pod, as its controller writes it."""
        maker = f"{self.name}-{self.template_hash or _random_suffix(random, 9)}"
        pod_name = f"{maker}-{_random_suffix(random, 5)}"
        pod_metadata: dict[str, Any] = {
            "name": self.name if self.user else pod_name,
            "namespace": self.namespace,
            "uid": _any_uid(random),
            "labels": {"app": self.name, **self.labels},
        }
        if self.template_hash:
            pod_metadata["labels"]["pod-template-hash"] = self.template_hash
        if not self.user:
            pod_metadata["generateName"] = f"{maker}-"
            kind, group = ("Job", "batch/v1") if self.hours else ("ReplicaSet", "apps/v1")
            reference = {"apiVersion": group, "kind": kind, "name": maker, "uid": _any_uid(random)}
            pod_metadata["ownerReferences"] = [{**reference, "controller": True}]
        container = {
            "name": self.name,
            "image": f"registry.example/{self.namespace}/{self.name}:1.{random.randint(4, 40)}",
            "resources": {side: dict(amounts) for side, amounts in self.resources.items()},
        }
        pod_spec: dict[str, Any] = {"containers": [container]}
        if self.priority:
            pod_spec["priorityClassName"] = self.priority
        return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": pod_spec}

    def request(
        self, pod: Mapping[str, Any], random: Random, *, dry_run: bool = False
    ) -> AdmissionRequest:
        """The admission request that creates a pod of this workload."""
        return AdmissionRequest(
            uid=_any_uid(random),
            kind=_POD,
            resource=_PODS,
            name=str(pod["metadata"]["name"]),
            namespace=self.namespace,
            operation=Operation.CREATE,
            user=self.requester,
            groups=("system:authenticated",) if self.user else _CONTROLLER_GROUPS,
            object=pod,
            dry_run=dry_run,
            is_plain=True,
        )


def _random_suffix(random: Random, length: int) -> str:
    return "".join(random.choices(_SUFFIX, k=length))


def _any_uid(random: Random) -> str:
    text = f"{random.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def requirements(
    cpu: str = "", memory: str = "", *, cpu_limit: str = "", memory_limit: str = ""
) -> dict[str, dict[str, str]]:
    """Requests and limits of a container, without those that are empty."""
    amounts_by_side = {
        "requests": {"cpu": cpu, "memory": memory},
        "limits": {"cpu": cpu_limit, "memory": memory_limit},
    }
    given = {side: {n: a for n, a in each.items() if a} for side, each in amounts_by_side.items()}
    return {side: each for side, each in given.items() if each}
