"""API defaulting on a fresh copy, if not settled: limits to requests, rounded amounts; ``record``.

Source: ``pkg/apis/core/v1/defaults.go``. Every quantity is rounded up to thousandths and rewritten
as Kubernetes prints it. The given object is not changed; the copy shares all unchanged parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.fields import expect_objects, expect_resource_list, read_map
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.names import is_hugepage, is_over_commit_allowed
from engine.pod.read import (
    ALL_CONTAINER_LISTS,
    ALL_STATUS_LISTS,
    PodSpec,
    read_pod,
    read_requirements,
)
from engine.pod.totals import aggregate, is_pod_level
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Tokens = tuple[str | int, ...]
    RecordChange = Callable[[Tokens, Any], None]

_REPORTED = frozenset(ALL_STATUS_LISTS)
_CLAIM = "PersistentVolumeClaim"
_OWN: Final = ("spec", "resources")


def default_pod(
    pod: Mapping[str, Any],
    record: RecordChange | None = None,
    version: KubernetesVersion = DEFAULT_VERSION,
) -> dict[str, Any]:
    """Default a pod as decoding does; idempotent. Raises DecodeError.

    ``record(path, value)`` receives each change of a value, in order, for a patch; a quantity that
    is only respelled is no change.
    """
    defaulted = dict(pod)
    if read_settled(pod) is not None:
        return defaulted
    record = record or _record_nothing
    spec = read_map(pod, "spec", "spec", "Pod.spec of type v1.PodSpec")
    fresh = dict(spec)
    for group in ALL_CONTAINER_LISTS:
        if spec.get(group) is not None:
            fresh[group] = _default_containers(spec, group, record)
    if spec.get("overhead") is not None:
        fresh["overhead"] = _round_list(spec["overhead"], ("spec", "overhead"), "PodSpec", record)
    if spec.get("resources") is not None:
        fresh["resources"] = _default_pod_level(pod, record, version)
    if any(fresh[field] is not spec[field] for field in fresh):
        defaulted["spec"] = fresh
    if pod.get("status") is not None:
        defaulted["status"] = _default_status(pod, record)
    return defaulted


def read_settled(pod: Mapping[str, Any]) -> PodSpec | None:
    """Read a pod that defaulting would not change, as API servers send them; None for all others.

    A pod that cannot be read is none of them: defaulting it raises the error.
    """
    status, spec = pod.get("status"), pod.get("spec")
    if type(spec) is not dict or spec.get("ephemeralContainers") is not None:
        return None
    if status is not None and not (type(status) is dict and _REPORTED.isdisjoint(status)):
        return None
    try:
        settled = read_pod(pod)
    except DecodeError:
        return None
    return settled if settled.is_settled else None


def default_claim(claim: Mapping[str, Any], record: RecordChange | None = None) -> dict[str, Any]:
    """Round the quantities of a PersistentVolumeClaim as decoding does; raises DecodeError.

    ``record`` is that of ``default_pod``.
    """
    record = record or _record_nothing
    defaulted = dict(claim)
    spec = read_map(claim, "spec", "spec", f"{_CLAIM}.spec of type v1.{_CLAIM}Spec")
    go_type = f"{_CLAIM}Spec.spec.resources of type v1.VolumeResourceRequirements"
    resources = read_map(spec, "resources", "spec.resources", go_type)
    if resources:
        defaulted["spec"] = dict(spec)
        at = ("spec", "resources")
        owner = "VolumeResourceRequirements"
        defaulted["spec"]["resources"] = _round_sides(resources, at, owner, record)
    status = read_map(claim, "status", "status", f"{_CLAIM}.status of type v1.{_CLAIM}Status")
    if status:
        defaulted["status"] = dict(status)
    for key in ("capacity", "allocatedResources"):
        if status.get(key) is not None:
            rounded = _round_list(status[key], ("status", key), f"{_CLAIM}Status", record)
            defaulted["status"][key] = rounded
    return defaulted


def _record_nothing(path: Tokens, value: Any) -> None:
    """Record nothing."""


def _default_containers(spec: Mapping[str, Any], group: str, record: RecordChange) -> list[Any]:
    """Round one list of containers and copy limits to missing requests.

    Returns the same list if nothing changes.
    """
    containers: list[Any] = spec[group]
    expect_objects(containers, f"spec.{group}", f"PodSpec.spec.{group}", "v1.Container")
    fresh = containers
    for position, container in enumerate(containers):
        resources = None if container is None else container.get("resources")
        if resources is None:
            continue
        at = ("spec", group, position, "resources")
        rounded = _round_sides(resources, at, "ResourceRequirements", record)
        limits = rounded.get("limits")
        # Ephemeral containers may not state resources: theirs are rounded, never completed.
        if limits and group != "ephemeralContainers":
            rounded = _add_missing(rounded, "requests", limits, at, record)
        if rounded is not resources:
            fresh = containers.copy() if fresh is containers else fresh
            fresh[position] = {**container, "resources": rounded}
    return fresh


def _add_missing(
    resources: dict[str, Any], side: str, texts: Mapping[str, str], at: Tokens, record: RecordChange
) -> dict[str, Any]:
    """Add missing amounts to one side; returns the same map if none is missing."""
    stated = resources.get(side)
    if stated is None:
        record((*at, side), dict(texts))
        return {**resources, side: dict(texts)}
    unstated = [name for name in texts if name not in stated]
    if not unstated:
        return resources
    for name in unstated:
        record((*at, side, name), texts[name])
    return {**resources, side: {**stated, **{name: texts[name] for name in unstated}}}


def _round_sides(resources: Any, at: Tokens, owner: str, record: RecordChange) -> Any:
    """Round limits and requests; returns the same map if nothing changes."""
    if not isinstance(resources, dict):
        read_requirements(resources, _dotted(at), _dotted(at, positions=False))
    fresh = resources
    for side in ("limits", "requests"):
        amounts = resources.get(side)
        if amounts is None:
            continue
        rounded = _round_list(amounts, (*at, side), owner, record)
        if rounded is not amounts:
            fresh = {**fresh, side: rounded}
    return fresh


def _round_list(amounts: Any, at: Tokens, owner: str, record: RecordChange) -> Any:
    """Round a map of quantities and print each as Kubernetes does; the same map if unchanged.

    ``owner`` is the Go struct that holds the field ``at``.
    """
    if not isinstance(amounts, dict):
        return expect_resource_list(amounts, _dotted(at), f"{owner}.{_dotted(at, positions=False)}")
    respelled = {}
    try:
        for name, amount in amounts.items():
            quantity = Quantity.parse_json(amount)
            rounded = quantity.round_up_milli()
            text = str(rounded)
            if rounded is not quantity:
                record((*at, name), text)
            if not isinstance(amount, str) or amount != text:
                respelled[name] = text
    except QuantityError:
        # Reading again raises the error with its path, which is expensive to spell out for all.
        expect_resource_list(amounts, _dotted(at), owner)
    return {**amounts, **respelled} if respelled else amounts


def _default_pod_level(
    pod: Mapping[str, Any], record: RecordChange, version: KubernetesVersion
) -> Any:
    """Round the pod's own resources, and complete them where decoding does that."""
    rounded = _round_sides(pod["spec"]["resources"], _OWN, "ResourceRequirements", record)
    if version.completes_pods_when_stored:
        return rounded
    # The containers' amounts are summed before they are rounded.
    spec = read_pod(pod)
    fresh = _complete_pages(rounded, spec, record)
    return _complete_requests(fresh, _filled(spec), record) if fresh.get("limits") else fresh


def complete_pod(
    pod: Mapping[str, Any], version: KubernetesVersion = DEFAULT_VERSION
) -> Mapping[str, Any]:
    """Complete a decoded pod's own resources as storing does, if that version does it then.

    Returns the same pod if nothing changes. Raises DecodeError.
    """
    if not version.completes_pods_when_stored:
        return pod
    spec = read_pod(pod)
    if not (spec.requests or spec.limits):
        return pod
    stated = pod["spec"]["resources"]
    fresh = _complete_requests(
        _complete_pages(stated, spec, _record_nothing), spec, _record_nothing
    )
    # Ephemeral containers have no limits, so that no limit of the pod follows from all containers.
    if not pod["spec"].get("ephemeralContainers"):
        fresh = _complete_limits(fresh, spec)
    if fresh is stated:
        return pod
    return {**pod, "spec": {**pod["spec"], "resources": fresh}}


def _complete_pages(fresh: dict[str, Any], spec: PodSpec, record: RecordChange) -> dict[str, Any]:
    """Add limits of huge pages that only containers state."""
    pages = _pages_of(spec)
    return _add_missing(fresh, "limits", pages, _OWN, record) if pages else fresh


def _complete_requests(
    fresh: dict[str, Any], spec: PodSpec, record: RecordChange
) -> dict[str, Any]:
    """Add requests: of cpu and memory the sum over the containers, of others the pod's limit."""
    summed = {
        name: quantity.round_up_milli().printed()
        for name, quantity in aggregate(spec, "requests").items()
        if is_pod_level(name) and is_over_commit_allowed(name)
    }
    wanted = {**(fresh.get("limits") or {}), **summed}
    return _add_missing(fresh, "requests", wanted, _OWN, record) if wanted else fresh


def _complete_limits(fresh: dict[str, Any], spec: PodSpec) -> dict[str, Any]:
    """Add a limit to each request for which all containers have one: the larger of both."""
    requests, limits = fresh.get("requests") or {}, fresh.get("limits") or {}
    summed = aggregate(spec, "limits")
    wanted = {
        name: text if Quantity.parse_json(text) > summed[name] else summed[name].printed()
        for name, text in requests.items()
        if name not in limits and is_pod_level(name) and _is_limited_by_all(spec, name)
    }
    return _add_missing(fresh, "limits", wanted, _OWN, _record_nothing) if wanted else fresh


def _is_limited_by_all(spec: PodSpec, name: str) -> bool:
    containers = spec.all_containers
    return bool(containers) and all(name in container.limits for container in containers)


def _pages_of(spec: PodSpec) -> dict[str, str]:
    """Sum the containers' limits of huge pages that a pod with own resources does not state."""
    own_names = {*spec.requests, *spec.limits}
    if not own_names:
        return {}
    return {
        name: quantity.round_up_milli().printed()
        for name, quantity in aggregate(spec, "limits").items()
        if is_hugepage(name) and name not in own_names
    }


def _filled(spec: PodSpec) -> PodSpec:
    """Copy the limits of containers to missing requests."""
    containers, init_containers = (
        tuple([replace(c, requests={**c.limits, **c.requests}) for c in containers_of_kind])
        for containers_of_kind in (spec.containers, spec.init_containers)
    )
    return replace(spec, containers=containers, init_containers=init_containers)


def _default_status(pod: Mapping[str, Any], record: RecordChange) -> dict[str, Any]:
    """Round the resources that containers report."""
    status = read_map(pod, "status", "status", "Pod.status of type v1.PodStatus")
    fresh = dict(status)
    for key in ALL_STATUS_LISTS:
        path = f"status.{key}"
        statuses = expect_objects(status.get(key), path, f"PodStatus.{path}", "v1.ContainerStatus")
        if statuses:
            fresh[key] = [
                _round_status(entry, ("status", key, position), record)
                for position, entry in enumerate(statuses)
            ]
    return fresh


def _round_status(reported: Mapping[str, Any], at: Tokens, record: RecordChange) -> dict[str, Any]:
    fresh = dict(reported)
    if reported.get("resources") is not None:
        at_resources = (*at, "resources")
        fresh["resources"] = _round_sides(
            reported["resources"], at_resources, "ResourceRequirements", record
        )
    if reported.get("allocatedResources") is not None:
        at_allocated = (*at, "allocatedResources")
        fresh["allocatedResources"] = _round_list(
            reported["allocatedResources"], at_allocated, "ContainerStatus", record
        )
    return fresh


def _dotted(at: Tokens, *, positions: bool = True) -> str:
    """Spell out a path as Kubernetes does, or without positions, as Go does."""
    dotted = ""
    for token in at:
        if isinstance(token, str):
            dotted += f".{token}" if dotted else token
        elif positions:
            dotted += f"[{token}]"
    return dotted
