"""The fields in which two manifests in normal form differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.patch import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAPS: Final = frozenset(
    "labels annotations hard min max default defaultRequest maxLimitRequestRatio"
    " updatedLabels updatedAnnotations".split()
)
"""Maps whose entries are fields of their own; an empty one is as good as none."""
Step = str | int
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field and its two values, None where there is none.

    ``field`` is like ``.spec.hard.pods`` or ``.spec.limits[0].max.cpu``; empty: the whole object.
    """

    field: str
    a: Any
    b: Any


def differences(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> tuple[Difference, ...]:
    """List what differs between two normal forms; an object that is not there is None.

    Lists of one length are compared entry by entry, all others as a whole.
    """
    return tuple(Difference(field_of(path), one, other) for path, one, other in walk(a, b))


def walk(a: Any, b: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Find what differs, by path."""
    if a is None or b is None:
        if a is not b:
            yield (), a, b
        return
    yield from _walk(a, b, ())


def field_of(path: Path) -> str:
    """Write a path as Kubernetes does."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _walk(a: Any, b: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys(), key=str):
            yield from _walk(a.get(key, ABSENT), b.get(key, ABSENT), (*path, key))
    elif _is_list_of_maps(a) and _is_list_of_maps(b) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _walk(one, other, (*path, index))
    elif path[-1:] and path[-1] in MAPS and ABSENT in (a, b):
        yield from _walk_map(a, b, path)
    elif a is ABSENT or b is ABSENT or not _is_same(a, b):
        yield path, _shown(a), _shown(b)


def _walk_map(a: Any, b: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Compare a map that one side lacks, which is the same as an empty one."""
    given = b if a is ABSENT else a
    if not isinstance(given, dict) or not given:
        yield path, _shown(a), _shown(b)
        return
    for key in sorted(given, key=str):
        yield (*path, key), *((None, given[key]) if a is ABSENT else (given[key], None))


def _shown(value: Any) -> Any:
    return None if value is ABSENT else value


def _is_same(a: Any, b: Any) -> bool:
    """Whether two values are equal as JSON, at any depth; true is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def _is_list_of_maps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)
