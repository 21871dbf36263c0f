"""Evaluators: names and suffixes that each resource tracks, ``count/`` names, updates that count.

Source: ``pkg/quota/v1/evaluator/core`` and ``pkg/quota/v1/install``. ``usage`` has the amounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from engine.names import is_native
from engine.request import GroupVersionResource, Operation
from engine.resource_quota.scopes import is_terminating

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.policy import ResourceQuota
    from engine.request import AdmissionRequest

PODS: Final = "pods"
SERVICES: Final = "services"
CLAIMS: Final = "persistentvolumeclaims"
RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
DEVICE_CLASS_REQUEST: Final = "requests.deviceclass.resource.kubernetes.io/"
CLASS_STORAGE: Final = ".storageclass.storage.k8s.io/requests.storage"
CLASS_CLAIMS: Final = ".storageclass.storage.k8s.io/persistentvolumeclaims"
CLASS_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
_COUNT_PREFIX: Final = "count/"
_REQUESTS: Final = "requests."

_POD_NAMES: Final = frozenset(
    {
        *("pods", "cpu", "memory", "ephemeral-storage"),
        *("requests.cpu", "requests.memory", "requests.ephemeral-storage"),
        *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
    }
)
_POD_PREFIXES: Final = ("hugepages-", "requests.hugepages-", DEVICE_CLASS_REQUEST)
_ALIASED: Final = frozenset({"configmaps", "secrets", "replicationcontrollers", "resourcequotas"})
_AUTHORIZATION: Final = ("selfsubject", "localsubject", "subject")
IGNORED: Final = frozenset(
    {
        *("bindings", "componentstatuses", "events", "events.events.k8s.io"),
        "tokenreviews.authentication.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        *(f"{whose}accessreviews.authorization.k8s.io" for whose in _AUTHORIZATION),
    }
)
"""Resources that no quota counts."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The quota names of one resource: exact ones and suffixes.

    ``updates`` are the sub-resources whose updates count.
    """

    names: frozenset[str]
    suffixes: tuple[str, ...] = ()
    updates: frozenset[str] = frozenset()
    is_pods: bool = False

    def tracks(self, name: str) -> bool:
        """Whether objects of the resource count under the name."""
        if name in self.names or (self.suffixes and name.endswith(self.suffixes)):
            return True
        # Huge pages, device classes and extended resources have no fixed names.
        return self.is_pods and (
            name.startswith(_POD_PREFIXES) or (name.startswith(_REQUESTS) and not is_native(name))
        )

    def tracked(self, names: Iterable[str]) -> tuple[str, ...]:
        """List the names that it tracks, sorted."""
        return _tracked(self, tuple(names))


# Each quota comes with the same names for every request.
@lru_cache(maxsize=4096)
def _tracked(evaluator: Evaluator, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if evaluator.tracks(name)))


_PODS = Evaluator(_POD_NAMES | {"count/pods"}, updates=frozenset({"resize"}), is_pods=True)
_SERVICES = Evaluator(
    frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"}),
    updates=frozenset({""}),
)
_CLAIMS = Evaluator(
    frozenset({f"count/{CLAIMS}", CLAIMS, "requests.storage"}),
    suffixes=(CLASS_STORAGE, CLASS_CLAIMS),
    updates=frozenset({"", "status"}),
)
_RESOURCE_CLAIMS = Evaluator(
    frozenset({f"count/{RESOURCE_CLAIMS}"}), suffixes=(CLASS_DEVICES,), updates=frozenset({""})
)
_EVALUATORS: Final = {
    PODS: _PODS,
    SERVICES: _SERVICES,
    CLAIMS: _CLAIMS,
    RESOURCE_CLAIMS: _RESOURCE_CLAIMS,
}


SPECIAL: Final = (
    *(GroupVersionResource(resource=name) for name in (PODS, SERVICES, CLAIMS)),
    GroupVersionResource(group="resource.k8s.io", resource="resourceclaims"),
)
"""Resources of which quotas bound more than the number of objects."""


def evaluator_of(resource: GroupVersionResource) -> Evaluator:
    """Find the evaluator of a resource; those without their own count objects only."""
    special = _EVALUATORS.get(str(resource))
    return special or Evaluator(frozenset(count_names(resource)))


def count_names(resource: GroupVersionResource) -> tuple[str, ...]:
    """List the names under which an object of the resource counts as one."""
    counted = f"{_COUNT_PREFIX}{resource}"
    return (resource.resource, counted) if str(resource) in _ALIASED else (counted,)


def counted_by(name: str) -> GroupVersionResource | None:
    """Find the resource whose objects a name counts as one each; None for other names."""
    if name in _ALIASED:
        return GroupVersionResource(resource=name)
    resource, _, group = name.removeprefix(_COUNT_PREFIX).partition(".")
    counted = GroupVersionResource(group=group, resource=resource)
    is_counted = name.startswith(_COUNT_PREFIX) and resource and str(counted) not in IGNORED
    return counted if is_counted else None


def names_of(quota: ResourceQuota, resource: GroupVersionResource) -> tuple[str, ...]:
    """List the names of a quota under which objects of the resource count."""
    return evaluator_of(resource).tracked(tuple(quota.hard))


def resources_of(names: Iterable[str]) -> set[GroupVersionResource]:
    """Find the resources whose objects count under any of these names of a quota.

    Only the spelling of a name is known here: no cluster may serve its resource.
    """
    hard_names = tuple(names)
    tracked = {resource for resource in SPECIAL if evaluator_of(resource).tracked(hard_names)}
    return tracked | {resource for resource in map(counted_by, hard_names) if resource is not None}


def is_tracked(name: str) -> bool:
    """Whether objects of any resource count under the name; otherwise it bounds nothing."""
    if name.startswith(_COUNT_PREFIX) or name in _ALIASED:
        return True
    return any(evaluator.tracks(name) for evaluator in _EVALUATORS.values())


def unknown_names(quota: ResourceQuota) -> list[str]:
    """List the tracked names of a quota of which is not known how much is used, sorted.

    Their objects are refused until it is known: ``status unknown for quota``.
    """
    return sorted(name for name in quota.hard if name not in quota.used and is_tracked(name))


def reason_not_counted(request: AdmissionRequest) -> str:
    """Explain why quotas do not count a request; empty where they do.

    Raises DecodeError for an updated pod whose deadline cannot be read.
    """
    if not request.namespace or str(request.resource) == "namespaces":
        return "the object is not inside a namespace"
    if str(request.resource) in IGNORED:
        return f"quotas never count {request.resource}"
    if request.object is None or not _is_counted(request):
        return "quotas do not count this operation"
    return ""


def _is_counted(request: AdmissionRequest) -> bool:
    if request.operation is Operation.CREATE:
        return not request.sub_resource
    if request.operation is not Operation.UPDATE:
        return False
    if request.sub_resource in evaluator_of(request.resource).updates:
        return True
    old_pod, pod = request.old_object, request.object
    if str(request.resource) != PODS or request.sub_resource or old_pod is None or pod is None:
        return False
    # A deadline moves a pod between the quotas of the scopes Terminating and NotTerminating.
    return is_terminating(old_pod) != is_terminating(pod)
