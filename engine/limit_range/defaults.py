"""Set a LimitRange's defaults in slots of containers by PatchBuilder; LimitRanger's annotation.

Source: ``mergePodResourceRequirements`` in ``plugin/pkg/admission/limitranger``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.cache import once
from engine.decision import Outcome, Step
from engine.fields import read_map
from engine.limit_range.manifest import CONTAINER
from engine.patch import PatchBuilder, PatchOperation
from engine.pod import read_pod
from engine.policy import Enforcement
from engine.resource_list import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.pod import PodSpec
    from engine.policy import LimitRange

ANNOTATION = "kubernetes.io/limit-ranger"
STEP = "LimitRangeDefaults"
_SLOTS_AT_ONCE = 64  # containers between two pauses
_PREFIX = "LimitRanger plugin set: "
_GO_METADATA = "Pod.metadata of type v1.ObjectMeta"
_GO_ANNOTATIONS = "ObjectMeta.metadata.annotations of type map[string]string"


@dataclass(frozen=True, slots=True)
class _Slot:
    """One container: its path in the pod, and the names that it states so far."""

    label: str
    path: tuple[str | int, ...]
    limits: set[str]
    requests: set[str]


def default_pod_resources(
    pod: Mapping[str, Any],
    ranges: Iterable[LimitRange],
    *,
    annotate: bool = True,
    spec: PodSpec | None = None,
    pause: Callable[[], None] | None = None,
) -> tuple[Mapping[str, Any], list[PatchOperation], list[Step]]:
    """Set the amounts that containers and init containers do not state, range by range in order.

    The first range to set a name wins; the annotation describes the last range that set anything.
    Ranges that only warn or audit set nothing. ``annotate`` is off for ``pods/resize``, which drops
    metadata. ``spec`` is the pod's, where it was read already. ``pause`` is that of the request.
    Returns the pod (a copy, or the given one where nothing is set), the operations and the trace.
    Raises DecodeError.
    """
    meta = read_map(pod, "metadata", "metadata", _GO_METADATA)
    read_map(meta, "annotations", "metadata.annotations", _GO_ANNOTATIONS)
    spec = spec or read_pod(pod)
    ranges = tuple(ranges)
    # Nearly all pods state everything: they need no copy and no builder.
    idle = [_idle_step(limit_range, spec) for limit_range in ranges]
    if all(idle):
        return pod, [], [step for step in idle if step]
    slots, builder = _slots(spec), PatchBuilder(pod)
    steps = [
        step or _fill_slots(limit_range, slots, builder, annotate=annotate, pause=pause)
        for limit_range, step in zip(ranges, idle, strict=True)
    ]
    return builder.object, builder.operations, steps


def _idle_step(limit_range: LimitRange, spec: PodSpec) -> Step | None:
    """Trace why a range sets nothing in a pod; None where it may set something."""
    defaults = _defaults_of(limit_range)
    if defaults.unused:
        return defaults.unused
    stated_limits, stated_requests = _stated_everywhere(spec)
    is_met = defaults.limits.keys() <= stated_limits and defaults.requests.keys() <= stated_requests
    return defaults.met if is_met or not spec.all_containers else None


@once
def _stated_everywhere(spec: PodSpec) -> tuple[frozenset[str], frozenset[str]]:
    """Find the names that all containers state already: of limits, and of requests."""
    containers = spec.all_containers
    limits = [frozenset(container.limits) for container in containers]
    requests = [frozenset(container.requests) for container in containers]
    no_names: frozenset[str] = frozenset()
    return (
        limits[0].intersection(*limits) if limits else no_names,
        requests[0].intersection(*requests) if requests else no_names,
    )


def _slots(spec: PodSpec) -> list[_Slot]:
    container_lists = (
        ("container", "containers", spec.containers),
        ("init container", "initContainers", spec.init_containers),
    )
    return [
        _Slot(f"{label} {c.name}", ("spec", key, i, "resources"), set(c.limits), set(c.requests))
        for label, key, containers in container_lists
        for i, c in enumerate(containers)
    ]


def _fill_slots(
    limit_range: LimitRange,
    slots: list[_Slot],
    builder: PatchBuilder,
    *,
    annotate: bool,
    pause: Callable[[], None] | None,
) -> Step:
    """Set one range's defaults in all containers, and annotate the pod."""
    defaults = _defaults_of(limit_range)
    set_names = []
    for position, slot in enumerate(slots):
        if pause is not None and not position % _SLOTS_AT_ONCE:
            pause()
        set_limits = _set_in_slot(builder, (*slot.path, "limits"), defaults.limits, slot.limits)
        set_requests = _set_in_slot(
            builder, (*slot.path, "requests"), defaults.requests, slot.requests
        )
        # Requests before limits, as LimitRanger writes the annotation.
        for names, side in ((set_requests, "request"), (set_limits, "limit")):
            if names:
                set_names.append(f"{', '.join(names)} {side} for {slot.label}")
    if not set_names:
        return defaults.met
    annotation = _PREFIX + "; ".join(set_names)
    if annotate:
        builder.set(("metadata", "annotations", ANNOTATION), annotation)
    return _step(limit_range, Outcome.CHANGED, annotation)


class _RangeDefaults(NamedTuple):
    """The defaults of one range for containers, as texts, and its steps where it sets nothing.

    ``unused`` is the step of a range that sets nothing in any pod, ``met`` that of a range whose
    defaults a pod does not need.
    """

    limits: dict[str, str]
    requests: dict[str, str]
    unused: Step | None
    met: Step


@once
def _defaults_of(limit_range: LimitRange) -> _RangeDefaults:
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for item in limit_range.items:
        if item.type == CONTAINER:
            limits |= to_json(item.default)
            requests |= to_json(item.default_request)
    unused = None
    if limit_range.enforcement is not Enforcement.ENFORCE:
        detail = f"sets nothing in {limit_range.enforcement} mode"
        unused = _step(limit_range, Outcome.SKIPPED, detail)
    elif not limits and not requests:
        unused = _step(limit_range, Outcome.NOT_MATCHED, "has no defaults for containers")
    met = _step(limit_range, Outcome.UNCHANGED, "every container has its own values")
    return _RangeDefaults(limits, requests, unused, met)


def _set_in_slot(
    builder: PatchBuilder,
    path: tuple[str | int, ...],
    defaults: Mapping[str, str],
    slot_names: set[str],
) -> list[str]:
    """Set the names that a container lacks, in one operation where it has no map yet."""
    if defaults.keys() <= slot_names:
        return []
    new_defaults = {name: text for name, text in defaults.items() if name not in slot_names}
    # Adding the whole map would replace the amounts that the container states.
    if slot_names:
        for name, text in new_defaults.items():
            builder.set((*path, name), text)
    else:
        builder.set(path, new_defaults)
    slot_names.update(new_defaults)
    return sorted(new_defaults)


def _step(limit_range: LimitRange, outcome: Outcome, detail: str) -> Step:
    return Step(name=STEP, outcome=outcome, policy=limit_range.ref, detail=detail)
