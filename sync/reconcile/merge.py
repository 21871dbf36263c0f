"""Build the manifest that ends a conflict, from the choices made field by field."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal

from sync.reconcile.diff import MAPS, field_of, walk
from sync.reconcile.normal_form import normal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sync.reconcile.diff import Path

    Manifest = Mapping[str, Any]

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
    """Give the manifest that was decided on, in normal form; None is a deletion.

    ``choices`` decide every field of ``differences(ours, theirs)``, or the whole object by the
    field "". Raises ResolutionError where one is missing or is none.
    """
    our, their = (None if one is None else normal(one) for one in (ours, theirs))
    found = [(field_of(path), path, other) for path, _, other in walk(our, their)]
    fields = {field for field, _, _ in found}
    if set(choices) != {""}:
        _require(fields, set(choices))
    if len(set(choices.values())) == 1:
        return our if "ours" in choices.values() else their
    result = copy.deepcopy(our)
    for field, path, value in found:
        if choices[field] == "theirs" and result is not None:
            _put(result, path, copy.deepcopy(value))
    return None if result is None else normal(result)


def _require(fields: set[str], chosen: set[str]) -> None:
    missing, unknown = sorted(fields - chosen), sorted(chosen - fields)
    if missing or unknown:
        raise ResolutionError(missing, unknown)


def _put(manifest: dict[str, Any], path: Path, value: Any) -> None:
    """Set a field, or take it away where the value is None, with the map that it leaves empty."""
    places: list[Any] = [manifest]
    for step in path[:-1]:
        here = places[-1]
        places.append(here[step] if isinstance(step, int) else here.setdefault(step, {}))
    if value is not None:
        places[-1][path[-1]] = value
        return
    places[-1].pop(path[-1], None)
    if not places[-1] and len(path) > 1 and path[-2] in MAPS:
        places[-2].pop(path[-2])
