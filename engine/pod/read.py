"""Read ``PodSpec`` and ``Container`` from a pod's raw lists, kept by marshalled excerpts; Go paths.

Shapes that the API server could not decode raise DecodeError with Go's text; unknown fields are
ignored. Pods of one template share one cached value, with all facts that it keeps.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from engine.cache import Kept, Remembering
from engine.fields import expect_map, expect_objects, expect_resource_list, expect_string, read_map
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.resource_list import ResourceList

_REQUIREMENTS = "ResourceRequirements"
_KEPT_SPECS: Final = 1024
_SPECS_ROOM: Final = 16 * 1024 * 1024  # bytes
_TIMES: Final = 16  # estimate: a value with its facts takes this multiple of its excerpt
_LONGEST_EXCERPT: Final = 4096  # bytes, about forty containers
_MOST_CONTAINERS: Final = 400  # at ten bytes each, more exceed the length anyway
# Later formats of marshal write references to shared objects, so that equal values differ.
_EXCERPT_FORMAT: Final = 0
_NOTHING: Mapping[str, Quantity] = {}
CONTAINER_LISTS: Final = ("containers", "initContainers")
"""The lists of a pod's spec whose resources count."""
ALL_CONTAINER_LISTS: Final = (*CONTAINER_LISTS, "ephemeralContainers")
STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses")
"""The lists of a pod's status whose resources count."""
ALL_STATUS_LISTS: Final = (*STATUS_LISTS, "ephemeralContainerStatuses")


@dataclass(frozen=True, slots=True)
class Container:
    """The resources of one container or init container; ``path`` is its path in the pod."""

    name: str
    path: str
    requests: ResourceList
    limits: ResourceList
    is_sidecar: bool = False


@dataclass(frozen=True, slots=True)
class PodSpec(Remembering):
    """The parts of a pod's spec that resource rules read.

    ``requests`` and ``limits`` are the pod's own (``spec.resources``); ``has_resources`` also holds
    for an empty ``spec.resources``. ``is_settled``: API defaulting is known not to change any of
    these parts.
    """

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    has_resources: bool = False
    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    overhead: ResourceList = field(default_factory=dict)
    is_settled: bool = field(default=False, compare=False)

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Containers, then init containers: the order in which Kubernetes visits them."""
        return self.containers + self.init_containers


def read_pod(pod: Mapping[str, Any] | PodSpec) -> PodSpec:
    """Read a pod as it stands, without defaulting, unless it was read already.

    Raises DecodeError.
    """
    if isinstance(pod, PodSpec):
        return pod
    spec = read_map(pod, "spec", "spec", "Pod.spec of type v1.PodSpec")
    excerpt = _excerpt(spec)
    return _read_spec(spec) if excerpt is None else _read_again(excerpt)


def _excerpt(spec: Mapping[str, Any]) -> bytes | None:
    """Serialize the parts that are read of a pod; None for a spec that is long or odd.

    Pods that are read differently have different excerpts: marshal distinguishes all types, and
    refuses RawNumber.
    """
    try:
        read_parts = [spec.get("resources"), spec.get("overhead")]
        for group in CONTAINER_LISTS:
            containers = spec.get(group)
            if containers and len(containers) > _MOST_CONTAINERS:
                return None
            read_parts.append(
                containers
                and [
                    (c.get("name"), c.get("restartPolicy"), c.get("resources")) for c in containers
                ]
            )
        excerpt = marshal.dumps(read_parts, _EXCERPT_FORMAT)
    except (AttributeError, TypeError, ValueError):
        return None
    return excerpt if len(excerpt) <= _LONGEST_EXCERPT else None


def _read_excerpt(excerpt: bytes) -> PodSpec:
    """Read the spec in an excerpt; raises DecodeError."""
    resources, overhead, *groups = marshal.loads(excerpt)  # noqa: S302 - our own bytes
    spec: dict[str, Any] = {"resources": resources, "overhead": overhead}
    for group, containers in zip(CONTAINER_LISTS, groups, strict=True):
        spec[group] = containers and [
            {"name": name, "restartPolicy": restart, "resources": stated}
            for name, restart, stated in containers
        ]
    return replace(_read_spec(spec), is_settled=_is_settled(spec))


# The estimate covers the spec with all facts that are kept with it.
_read_again: Final = Kept(
    _read_excerpt, lambda excerpt, _spec: _TIMES * len(excerpt), most=_KEPT_SPECS, room=_SPECS_ROOM
)


def _read_spec(spec: Mapping[str, Any]) -> PodSpec:
    resources = spec.get("resources")
    requests, limits = read_requirements(resources, "spec.resources", "spec.resources")
    return PodSpec(
        containers=_read_containers(spec, "containers"),
        init_containers=_read_containers(spec, "initContainers"),
        has_resources=resources is not None,
        requests=requests,
        limits=limits,
        overhead=expect_resource_list(
            spec.get("overhead"), "spec.overhead", "PodSpec.spec.overhead"
        ),
    )


def _is_settled(spec: Mapping[str, Any]) -> bool:
    """Whether defaulting changes nothing in a readable spec.

    A pod with resources of its own counts as not settled, since checking them takes long.
    """
    if spec["resources"] is not None or not _is_final(spec["overhead"]):
        return False
    for container in (c for group in CONTAINER_LISTS for c in spec[group] or ()):
        resources = container["resources"] or {}
        limits, requests = resources.get("limits"), resources.get("requests")
        if not _is_final(limits) or not _is_final(requests):
            return False
        # Defaulting copies each limit that has no request.
        if limits and (requests is None or not limits.keys() <= requests.keys()):
            return False
    return True


def _is_final(raw_amounts: Mapping[str, Any] | None) -> bool:
    """Whether each amount is spelled as Kubernetes prints it, in whole thousandths."""
    return all(
        isinstance(amount, str) and amount == str(Quantity.parse_json(amount).round_up_milli())
        for amount in (raw_amounts or {}).values()
    )


def read_requirements(raw: Any, path: str, go_path: str) -> tuple[ResourceList, ResourceList]:
    """Read ``resources`` into requests and limits; absent and null are empty."""
    if raw is None:
        return {}, {}
    if type(raw) is dict:
        requests, limits = _quantities(raw.get("requests")), _quantities(raw.get("limits"))
        if requests is not None and limits is not None:
            return requests, limits
    return _requirements_with_paths(raw, path, go_path)


def _quantities(amounts: Any) -> dict[str, Quantity] | None:
    """Read a map of quantities; None where that fails for any reason."""
    if amounts is None:
        return {}
    if type(amounts) is not dict:
        return None
    try:
        return {name: Quantity.parse_json(amount) for name, amount in amounts.items()}
    except QuantityError:
        return None


def _requirements_with_paths(
    raw: Any, path: str, go_path: str
) -> tuple[ResourceList, ResourceList]:
    """Read ``resources`` again, to raise the first error in document order, as Go does.

    Paths are spelled out only here, since nearly all pods can be read without them.
    """
    owner = "PodSpec" if go_path == "spec.resources" else "Container"
    raw_sides = expect_map(raw, path, f"{owner}.{go_path} of type v1.{_REQUIREMENTS}")
    return (
        by_side := {
            side: expect_resource_list(
                amounts, f"{path}.{side}", f"{_REQUIREMENTS}.{go_path}.{side}"
            )
            for side, amounts in raw_sides.items()
            if side in {"requests", "limits"}
        }
    ).get("requests", {}), by_side.get("limits", {})


def _read_containers(spec: Mapping[str, Any], group: str) -> tuple[Container, ...]:
    """Read one of the pod's container lists."""
    if spec.get(group) is None:
        return ()
    containers = expect_objects(
        spec.get(group), f"spec.{group}", f"PodSpec.spec.{group}", "v1.Container"
    )
    return tuple([_read_container(c, group, place) for place, c in enumerate(containers)])


def _read_container(raw: Mapping[str, Any], group: str, position: int) -> Container:
    path = f"spec.{group}[{position}]"
    name, restart = raw.get("name"), raw.get("restartPolicy")
    if type(name) is not str:
        name = expect_string(name, f"{path}.name", f"Container.spec.{group}.name of type string")
    if restart is not None and type(restart) is not str:
        go_type = f"Container.spec.{group}.restartPolicy of type v1.ContainerRestartPolicy"
        expect_string(restart, f"{path}.restartPolicy", go_type)
    resources = raw.get("resources")
    if resources is None:
        return Container(name, path, _NOTHING, _NOTHING, restart == "Always")
    requests, limits = read_requirements(resources, f"{path}.resources", f"spec.{group}.resources")
    return Container(name, path, requests, limits, restart == "Always")
