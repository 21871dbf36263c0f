"""API defaulting of pods and claims: copy limits to requests, round quantities, on a copy.

Source: ``pkg/apis/core/v1/defaults.go``. Every quantity is rounded up to thousandths and rewritten
as Kubernetes prints it. The given object is not changed; the copy shares all unchanged parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError
from engine.fields import expect_objects, expect_resource_list, read_map
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
    Record = Callable[[Tokens, Any], None]

_REPORTS = frozenset(ALL_STATUS_LISTS)
_CLAIM = "PersistentVolumeClaim"


def default_pod(pod: Mapping[str, Any], record: Record | None = None) -> dict[str, Any]:
    """Default a pod as decoding and storing do; idempotent. Raises DecodeError.

    ``record(path, value)`` receives each change of a value, in order, for a patch; a quantity that
    is only respelled is no change.
    """
    result = dict(pod)
    if read_settled(pod) is not None:
        return result
    record = record or _forget
    spec = read_map(pod, "spec", "spec", "Pod.spec of type v1.PodSpec")
    fresh = dict(spec)
    for group in ALL_CONTAINER_LISTS:
        if spec.get(group) is not None:
            fresh[group] = _default_containers(spec, group, record)
    if spec.get("overhead") is not None:
        fresh["overhead"] = _rounded(spec["overhead"], ("spec", "overhead"), "PodSpec", record)
    if spec.get("resources") is not None:
        fresh["resources"] = _default_pod_level(pod, record)
    if any(fresh[key] is not spec[key] for key in fresh):
        result["spec"] = fresh
    if pod.get("status") is not None:
        result["status"] = _default_status(pod, record)
    return result


def read_settled(pod: Mapping[str, Any]) -> PodSpec | None:
    """Read a pod that defaulting would not change, as API servers send them; None for all others.

    A pod that cannot be read is none of them: defaulting it raises the error.
    """
    status, spec = pod.get("status"), pod.get("spec")
    if type(spec) is not dict or spec.get("ephemeralContainers") is not None:
        return None
    if status is not None and not (type(status) is dict and _REPORTS.isdisjoint(status)):
        return None
    try:
        found = read_pod(pod)
    except DecodeError:
        return None
    return found if found.is_settled else None


def default_claim(claim: Mapping[str, Any], record: Record | None = None) -> dict[str, Any]:
    """Round the quantities of a PersistentVolumeClaim as decoding does; raises DecodeError.

    ``record`` is that of ``default_pod``.
    """
    record = record or _forget
    result = dict(claim)
    spec = read_map(claim, "spec", "spec", f"{_CLAIM}.spec of type v1.{_CLAIM}Spec")
    go_type = f"{_CLAIM}Spec.spec.resources of type v1.VolumeResourceRequirements"
    resources = read_map(spec, "resources", "spec.resources", go_type)
    if resources:
        result["spec"] = dict(spec)
        at = ("spec", "resources")
        owner = "VolumeResourceRequirements"
        result["spec"]["resources"] = _round_sides(resources, at, owner, record)
    status = read_map(claim, "status", "status", f"{_CLAIM}.status of type v1.{_CLAIM}Status")
    if status:
        result["status"] = dict(status)
    for key in ("capacity", "allocatedResources"):
        if status.get(key) is not None:
            rounded = _rounded(status[key], ("status", key), f"{_CLAIM}Status", record)
            result["status"][key] = rounded
    return result


def _forget(path: Tokens, value: Any) -> None:
    """Record nothing."""


def _default_containers(spec: Mapping[str, Any], group: str, record: Record) -> list[Any]:
    """Round one list of containers and copy limits to missing requests.

    Returns the same list if nothing changes.
    """
    entries: list[Any] = spec[group]
    expect_objects(entries, f"spec.{group}", f"PodSpec.spec.{group}", "v1.Container")
    fresh = entries
    for position, entry in enumerate(entries):
        resources = None if entry is None else entry.get("resources")
        if resources is None:
            continue
        at = ("spec", group, position, "resources")
        defaulted = _round_sides(resources, at, "ResourceRequirements", record)
        limits = defaulted.get("limits")
        # Ephemeral containers may not state resources: theirs are rounded, never completed.
        if limits and group != "ephemeralContainers":
            defaulted = _add_missing(defaulted, "requests", limits, at, record)
        if defaulted is not resources:
            fresh = entries.copy() if fresh is entries else fresh
            fresh[position] = {**entry, "resources": defaulted}
    return fresh


def _add_missing(
    resources: dict[str, Any], side: str, texts: Mapping[str, str], at: Tokens, record: Record
) -> dict[str, Any]:
    """Add missing amounts to one side; returns the same map if none is missing."""
    present = resources.get(side)
    if present is None:
        record((*at, side), dict(texts))
        return {**resources, side: dict(texts)}
    missing = [name for name in texts if name not in present]
    if not missing:
        return resources
    for name in missing:
        record((*at, side, name), texts[name])
    return {**resources, side: {**present, **{name: texts[name] for name in missing}}}


def _round_sides(resources: Any, at: Tokens, owner: str, record: Record) -> Any:
    """Round limits and requests; returns the same map if nothing changes."""
    if not isinstance(resources, dict):
        read_requirements(resources, _dotted(at), _dotted(at, numbers=False))
    fresh = resources
    for side in ("limits", "requests"):
        raw = resources.get(side)
        if raw is None:
            continue
        rounded = _rounded(raw, (*at, side), owner, record)
        if rounded is not raw:
            fresh = {**fresh, side: rounded}
    return fresh


def _rounded(raw: Any, at: Tokens, owner: str, record: Record) -> Any:
    """Round a map of quantities and print each as Kubernetes does; the same map if unchanged.

    ``owner`` is the Go struct that holds the field ``at``.
    """
    if not isinstance(raw, dict):
        return expect_resource_list(raw, _dotted(at), f"{owner}.{_dotted(at, numbers=False)}")
    changes = {}
    try:
        for name, value in raw.items():
            quantity = Quantity.parse_json(value)
            rounded = quantity.round_up_milli()
            text = str(rounded)
            if rounded is not quantity:
                record((*at, name), text)
            if not isinstance(value, str) or value != text:
                changes[name] = text
    except QuantityError:
        # Reading again raises the error with its path, which is expensive to spell out for all.
        expect_resource_list(raw, _dotted(at), owner)
    return {**raw, **changes} if changes else raw


def _default_pod_level(pod: Mapping[str, Any], record: Record) -> Any:
    """Round the pod's own resources, and complete them from its containers'.

    Limits of huge pages are completed first. Then each limit gets a request: for cpu and memory the
    sum of the containers' requests (summed before rounding), for others a copy of the limit.
    """
    at = ("spec", "resources")
    raw = pod["spec"]["resources"]
    fresh = _round_sides(raw, at, "ResourceRequirements", record)
    spec = read_pod(pod)
    if pages := _pages_of(spec):
        fresh = _add_missing(fresh, "limits", pages, at, record)
    if not fresh.get("limits"):
        return fresh
    texts = {
        name: quantity.round_up_milli().printed()
        for name, quantity in aggregate(_filled(spec), "requests").items()
        if is_pod_level(name) and is_over_commit_allowed(name)
    }
    return _add_missing(fresh, "requests", {**fresh["limits"], **texts}, at, record)


def _pages_of(spec: PodSpec) -> dict[str, str]:
    """Sum the containers' limits of huge pages that a pod with own resources does not state."""
    own = {*spec.requests, *spec.limits}
    if not own:
        return {}
    return {
        name: quantity.round_up_milli().printed()
        for name, quantity in aggregate(spec, "limits").items()
        if is_hugepage(name) and name not in own
    }


def _filled(spec: PodSpec) -> PodSpec:
    """Copy the limits of containers to missing requests."""
    containers, init_containers = (
        tuple([replace(c, requests={**c.limits, **c.requests}) for c in group])
        for group in (spec.containers, spec.init_containers)
    )
    return replace(spec, containers=containers, init_containers=init_containers)


def _default_status(pod: Mapping[str, Any], record: Record) -> dict[str, Any]:
    """Round the resources that containers report."""
    status = read_map(pod, "status", "status", "Pod.status of type v1.PodStatus")
    fresh = dict(status)
    for key in ALL_STATUS_LISTS:
        path = f"status.{key}"
        entries = expect_objects(status.get(key), path, f"PodStatus.{path}", "v1.ContainerStatus")
        if entries:
            fresh[key] = [
                _round_status(entry, ("status", key, position), record)
                for position, entry in enumerate(entries)
            ]
    return fresh


def _round_status(entry: Mapping[str, Any], at: Tokens, record: Record) -> dict[str, Any]:
    fresh = dict(entry)
    if entry.get("resources") is not None:
        at_resources = (*at, "resources")
        fresh["resources"] = _round_sides(
            entry["resources"], at_resources, "ResourceRequirements", record
        )
    if entry.get("allocatedResources") is not None:
        at_allocated = (*at, "allocatedResources")
        fresh["allocatedResources"] = _rounded(
            entry["allocatedResources"], at_allocated, "ContainerStatus", record
        )
    return fresh


def _dotted(at: Tokens, *, numbers: bool = True) -> str:
    """Spell out a path as Kubernetes does, or without positions, as Go does."""
    text = ""
    for token in at:
        if isinstance(token, str):
            text += f".{token}" if text else token
        elif numbers:
            text += f"[{token}]"
    return text
