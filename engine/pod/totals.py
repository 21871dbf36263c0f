"""Sums over a pod's containers, sidecars, peak, overhead, reported status; QoS class by nanos.

Source: ``k8s.io/component-helpers/resource/helpers.go``, the LimitRanger plugin and
``pkg/apis/core/v1/helper/qos/qos.go``. Only quotas count overhead, huge pages of the pod's own
resources, and resizes under way. The QoS class expects requests that API defaulting filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.cache import Remembering, once
from engine.fields import expect_objects, expect_resource_list, read_map, read_text
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.names import is_hugepage
from engine.pod.read import STATUS_LISTS, Container, PodSpec, read_pod, read_requirements
from engine.resource_list import add

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.quantity import Quantity
    from engine.resource_list import ResourceList

_POD_LEVEL = ("cpu", "memory")


class QOSClass(StrEnum):
    """The quality-of-service classes of pods."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


@dataclass(frozen=True, slots=True)
class PodTotals(Remembering):
    """Requests and limits of a whole pod; a name is present if any container states it."""

    requests: ResourceList
    limits: ResourceList


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """The resources that a running container reports; ``allocated`` are the granted requests."""

    requests: ResourceList
    limits: ResourceList
    allocated: ResourceList
    has_resources: bool = True


_SILENT: Final = ContainerStatus({}, {}, {}, has_resources=False)


@once
def limit_range_totals(spec: PodSpec) -> PodTotals:
    """Totals as a LimitRange of type Pod sees them: neither overhead nor status counts."""
    return PodTotals(
        requests=_prefer_own(aggregate(spec, "requests"), spec.requests, hugepages=False),
        limits=_prefer_own(aggregate(spec, "limits"), spec.limits, hugepages=False),
    )


def quota_totals(
    pod: Mapping[str, Any],
    spec: PodSpec | None = None,
    version: KubernetesVersion = DEFAULT_VERSION,
) -> PodTotals:
    """Totals as a quota charges them; raises DecodeError.

    Beyond ``limit_range_totals`` they include the pod's own huge pages, overhead (for limits only
    where there is one), and for containers that report resources the larger of spec and status.
    ``spec`` is the pod's, where it was read already.
    """
    spec = spec or read_pod(pod)
    if pod.get("status") is None:
        return _quota_totals(spec)
    status = read_map(pod, "status", "status", "Pod.status of type v1.PodStatus")
    reported = _read_statuses(status)
    if not reported:
        return _quota_totals(spec)
    # Until a resize is done, the larger of old and new resources is reserved on the node.
    infeasible = _is_resize_infeasible(status)
    if version.compares_sums_in_resizes:
        return _totals_of(spec, *_larger_sums(spec, reported, infeasible=infeasible))
    return _quota_totals(_with_status(spec, reported, infeasible=infeasible))


@once
def _quota_totals(spec: PodSpec) -> PodTotals:
    return _totals_of(spec, aggregate(spec, "requests"), aggregate(spec, "limits"))


def _totals_of(
    spec: PodSpec, summed_requests: dict[str, Quantity], summed_limits: dict[str, Quantity]
) -> PodTotals:
    """Add what the pod itself has to the sums over its containers."""
    requests = _prefer_own(summed_requests, spec.requests, hugepages=True)
    limits = _prefer_own(summed_limits, spec.limits, hugepages=True)
    if spec.overhead:
        requests = add(requests, spec.overhead)
        # Overhead raises only limits that exist: without one the pod stays unbounded.
        bounded = {k: v for k, v in spec.overhead.items() if k in limits and limits[k].nano}
        limits = add(limits, bounded)
    return PodTotals(requests, limits)


def has_pod_level_resources(spec: PodSpec) -> bool:
    """Whether the pod itself states cpu, memory or huge pages, so that containers need not."""
    return spec.has_resources and any(map(is_pod_level, (*spec.requests, *spec.limits)))


def is_pod_level(name: str) -> bool:
    """Whether a pod as a whole may state the resource."""
    return name in _POD_LEVEL or is_hugepage(name)


def aggregate(spec: PodSpec, side: str) -> dict[str, Quantity]:
    """Sum one side of the containers, whatever the pod itself states."""
    # Init containers run one by one, each beside the sidecars started before it, and all of them
    # before the others: the pod needs the larger of that peak and the sum of all that run later.
    total: dict[str, Quantity] = {}
    for container in spec.containers:
        _add_amounts(total, getattr(container, side))
    if not spec.init_containers:
        return total
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.init_containers:
        amounts = getattr(container, side)
        if container.is_sidecar:
            _add_amounts(total, amounts)
            _add_amounts(sidecars, amounts)
            _raise_to(peak, sidecars)
        else:
            _raise_to(peak, add(amounts, sidecars))
    _raise_to(total, peak)
    return total


def _add_amounts(total: dict[str, Quantity], amounts: ResourceList) -> None:
    """Add in place; quantities are immutable, and a new map for each container costs time."""
    for name, quantity in amounts.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise_to(total: dict[str, Quantity], amounts: ResourceList) -> None:
    """Take the larger amounts in place; of two equal ones the text of ``total`` stays."""
    for name, quantity in amounts.items():
        if name not in total or quantity.nano > total[name].nano:
            total[name] = quantity


def _prefer_own(
    summed: dict[str, Quantity], own: ResourceList, *, hugepages: bool
) -> dict[str, Quantity]:
    """Replace the sum by the amounts that the pod itself states."""
    if not own:
        return summed
    return summed | {
        name: quantity
        for name, quantity in own.items()
        if name in _POD_LEVEL or (hugepages and is_hugepage(name))
    }


def _larger_sums(
    spec: PodSpec, reported: Mapping[str, ContainerStatus], *, infeasible: bool
) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """Sum up what is asked for, granted and in force, each over all containers; take the larger.

    Returns requests and limits. A container that reports nothing counts with its spec, or not at
    all where the resize is infeasible.
    """
    granted, in_force = (
        replace(spec, containers=containers, init_containers=init_containers)
        for containers, init_containers in zip(
            *(
                _states(group, reported, infeasible=infeasible)
                for group in (spec.containers, spec.init_containers)
            ),
            strict=True,
        )
    )
    requests = [aggregate(in_force, "requests"), aggregate(granted, "requests")]
    limits = [aggregate(in_force, "limits")]
    if not infeasible:
        requests.insert(0, aggregate(spec, "requests"))
        limits.insert(0, aggregate(spec, "limits"))
    return _larger_of(requests), _larger_of(limits)


def _states(
    containers: tuple[Container, ...], reported: Mapping[str, ContainerStatus], *, infeasible: bool
) -> tuple[tuple[Container, ...], tuple[Container, ...]]:
    """Containers with the resources granted to them, and with those in force."""
    granted, in_force = [], []
    for container in containers:
        status = reported.get(container.name, _SILENT)
        requests, limits = ({}, {}) if infeasible else (container.requests, container.limits)
        allocated = status.allocated or requests
        granted.append(replace(container, requests=allocated))
        in_force.append(
            replace(
                container, requests=status.requests or allocated, limits=status.limits or limits
            )
        )
    return tuple(granted), tuple(in_force)


def _with_status(
    spec: PodSpec, reported: Mapping[str, ContainerStatus], *, infeasible: bool
) -> PodSpec:
    """Merge the resources that each container and sidecar reports."""
    sidecars = tuple(
        _blend(c, reported, infeasible=infeasible) if c.is_sidecar else c
        for c in spec.init_containers
    )
    containers = tuple(_blend(c, reported, infeasible=infeasible) for c in spec.containers)
    return replace(spec, containers=containers, init_containers=sidecars)


def _blend(
    container: Container, reported: Mapping[str, ContainerStatus], *, infeasible: bool
) -> Container:
    """Take the larger of spec and status; without the spec if its resize is infeasible."""
    status = reported.get(container.name)
    if status is None or not status.has_resources:
        return container
    requests = [status.requests, status.allocated]
    limits = [status.limits]
    if not infeasible:
        requests.insert(0, container.requests)
        limits.insert(0, container.limits)
    return replace(container, requests=_larger_of(requests), limits=_larger_of(limits))


def _larger_of(reported: Iterable[ResourceList]) -> dict[str, Quantity]:
    larger: dict[str, Quantity] = {}
    for resources in reported:
        _raise_to(larger, resources)
    return larger


def _read_statuses(status: Mapping[str, Any]) -> dict[str, ContainerStatus]:
    """Read what containers report, by name; those that report no resources are left out."""
    reported = {}
    for group in STATUS_LISTS:
        go_path = f"status.{group}"
        reports = expect_objects(
            status.get(group), go_path, f"PodStatus.{go_path}", "v1.ContainerStatus"
        )
        for position, entry in enumerate(reports):
            if entry.get("resources") is None and entry.get("allocatedResources") is None:
                continue
            path = f"{go_path}[{position}]"
            name = read_text(entry, "name", path, f"ContainerStatus.{go_path}.name of type string")
            requests, limits = read_requirements(
                entry.get("resources"), f"{path}.resources", f"{go_path}.resources"
            )
            allocated = expect_resource_list(
                entry.get("allocatedResources"),
                f"{path}.allocatedResources",
                f"ContainerStatus.{go_path}.allocatedResources",
            )
            has_resources = entry.get("resources") is not None
            reported[name] = ContainerStatus(requests, limits, allocated, has_resources)
    return reported


def _is_resize_infeasible(status: Mapping[str, Any]) -> bool:
    """Whether the node can never grant the resize that the spec asks for."""
    conditions = expect_objects(
        status.get("conditions"),
        "status.conditions",
        "PodStatus.status.conditions",
        "v1.PodCondition",
    )
    pending_resize = next((c for c in conditions if c.get("type") == "PodResizePending"), None)
    return pending_resize is not None and pending_resize.get("reason") == "Infeasible"


def qos_class(
    pod: Mapping[str, Any] | PodSpec, version: KubernetesVersion = DEFAULT_VERSION
) -> QOSClass:
    """Compute the class from the pod's own resources if it has any, else from its containers.

    ``status.qosClass`` and ephemeral containers are ignored. Raises DecodeError for a pod that
    cannot be read.
    """
    spec = read_pod(pod)
    if (
        spec.has_resources
        and version.ignores_empty_pod_resources
        and not has_pod_level_resources(spec)
    ):
        spec = replace(spec, has_resources=False)
    return _qos_of(spec)


@once
def _qos_of(spec: PodSpec) -> QOSClass:
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_bounded = True
    if spec.has_resources:
        _count_qos(requests, spec.requests)
        is_bounded = _count_qos(limits, spec.limits) or not spec.limits
    else:
        for container in spec.all_containers:
            _count_qos(requests, container.requests)
            is_bounded = _count_qos(limits, container.limits) and is_bounded
    if not requests and not limits:
        return QOSClass.BEST_EFFORT
    return QOSClass.GUARANTEED if is_bounded and requests == limits else QOSClass.BURSTABLE


def _count_qos(nanos: dict[str, int], resources: ResourceList) -> bool:
    """Add positive amounts in nanos to ``total``; whether cpu and memory are both among them."""
    has_both = True
    for name in _POD_LEVEL:
        quantity = resources.get(name)
        if quantity is not None and quantity.nano > 0:
            nanos[name] = nanos.get(name, 0) + quantity.nano
        else:
            has_both = False
    return has_both
