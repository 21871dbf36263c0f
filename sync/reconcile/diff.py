"""Difference by field path of two manifests; ``resolve`` merges by choices ours or theirs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from engine.patch import ABSENT
from policies.managed_fields import normal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Manifest = Mapping[str, Any]


MAPS: Final = frozenset(
    "labels annotations hard min max default defaultRequest maxLimitRequestRatio"
    " updatedLabels updatedAnnotations".split()
)
"""Maps whose entries are fields of their own; an empty map equals an absent one."""
Step = str | int
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field and its two values, None for an absent one.

    ``field`` is like ``.spec.hard.pods`` or ``.spec.limits[0].max.cpu``; empty: the whole object.
    """

    field: str
    a: Any
    b: Any


def differences(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> tuple[Difference, ...]:
    """List the fields in which two normal forms differ; an absent object is None.

    Lists of equal length are compared entry by entry, all others as a whole.
    """
    return tuple(Difference(field_of(path), one, other) for path, one, other in walk(a, b))


def walk(a: Any, b: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the paths at which two normal forms differ, with both values."""
    if a is None or b is None:
        if a is not b:
            yield (), a, b
        return
    yield from _walk_values(a, b, ())


def field_of(path: Path) -> str:
    """Write a path as Kubernetes does."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _walk_values(a: Any, b: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys(), key=str):
            yield from _walk_values(a.get(key, ABSENT), b.get(key, ABSENT), (*path, key))
    elif _is_list_of_maps(a) and _is_list_of_maps(b) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _walk_values(one, other, (*path, index))
    elif path[-1:] and path[-1] in MAPS and ABSENT in (a, b):
        yield from _walk_map(a, b, path)
    elif a is ABSENT or b is ABSENT or not _is_same_value(a, b):
        yield path, _none_if_absent(a), _none_if_absent(b)


def _walk_map(a: Any, b: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Compare a map with an absent one entry by entry, as with an empty one."""
    given_map = b if a is ABSENT else a
    if not isinstance(given_map, dict) or not given_map:
        yield path, _none_if_absent(a), _none_if_absent(b)
        return
    for key in sorted(given_map, key=str):
        yield (*path, key), *((None, given_map[key]) if a is ABSENT else (given_map[key], None))


def _none_if_absent(value: Any) -> Any:
    return None if value is ABSENT else value


def _is_same_value(a: Any, b: Any) -> bool:
    """Whether two values are equal as JSON, at any depth."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same_value(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same_value, a, b))
    # True is 1 to Python, and not to JSON.
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def _is_list_of_maps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


Side = Literal["ours", "theirs"]


class ResolutionError(ValueError):
    """The choices do not fit the differences: ``missing`` ones, and ``unknown`` fields."""

    def __init__(self, missing: list[str], unknown: list[str]) -> None:
        super().__init__(f"not decided: {missing}; no difference: {unknown}")
        self.missing = missing
        self.unknown = unknown


def resolve(
    base: Manifest | None,  # noqa: ARG001 - part of what was decided on
    ours: Manifest | None,
    theirs: Manifest | None,
    choices: Mapping[str, Side],
) -> dict[str, Any] | None:
    """Merge both sides by the choices into one manifest in normal form; None is a deletion.

    ``choices`` decide every field of ``differences(ours, theirs)``, or the whole object by the
    field "". Raises ResolutionError for a missing choice, and for one without a difference.
    """
    our, their = (None if one is None else normal(one) for one in (ours, theirs))
    found_differences = [(field_of(path), path, other) for path, _, other in walk(our, their)]
    fields = {field for field, _, _ in found_differences}
    missing, unknown = sorted(fields - choices.keys()), sorted(choices.keys() - fields)
    if set(choices) != {""} and (missing or unknown):
        raise ResolutionError(missing, unknown)
    if len(set(choices.values())) == 1:
        return our if "ours" in choices.values() else their
    resolved_manifest = copy.deepcopy(our)
    for field, path, their_value in found_differences:
        if choices[field] == "theirs" and resolved_manifest is not None:
            _put_value(resolved_manifest, path, copy.deepcopy(their_value))
    return None if resolved_manifest is None else normal(resolved_manifest)


def _put_value(manifest: dict[str, Any], path: Path, value: Any) -> None:
    """Set a field, or remove it if the value is None, with a map that becomes empty."""
    containers: list[Any] = [manifest]
    for step in path[:-1]:
        parent = containers[-1]
        containers.append(parent[step] if isinstance(step, int) else parent.setdefault(step, {}))
    if value is not None:
        containers[-1][path[-1]] = value
        return
    containers[-1].pop(path[-1], None)
    if not containers[-1] and len(path) > 1 and path[-2] in MAPS:
        containers[-2].pop(path[-2])
