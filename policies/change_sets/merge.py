"""Three-way merge of base, mine and theirs when two users edit one manifest; conflicts by path.

``merge`` two edits of a manifest; ``merge_objects`` also where one side made or deleted it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from engine.patch import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Manifest = Mapping[str, Any]

Side = Literal["mine", "theirs"]


@dataclass(slots=True)
class Merged:
    """Both changes together; ``conflicts`` are the paths that both changed, where mine wins."""

    manifest: dict[str, Any]
    conflicts: list[str] = field(default_factory=list)


def merge(
    base: Mapping[str, Any] | None, mine: Mapping[str, Any], theirs: Mapping[str, Any] | None
) -> Merged:
    """Merge field by field, items of a range by their type, and other lists as a whole."""
    merged = Merged({})
    merged.manifest = _merge_values(base or {}, mine, theirs or {}, "", merged)
    return merged


def merge_objects(
    base: Manifest | None, mine: Manifest | None, theirs: Manifest | None, *, keep: Side = "mine"
) -> tuple[Manifest | None, list[str]]:
    """Merge two sides of an object, None where it does not exist; and the paths that conflict.

    In conflicts the side ``keep`` wins. The empty path stands for the whole object, which one
    side deleted and the other one changed.
    """
    if theirs in (mine, base):
        return mine, []
    if mine == base:
        return theirs, []
    if mine is None or theirs is None:
        return (mine if keep == "mine" else theirs), [""]
    winner, other = (mine, theirs) if keep == "mine" else (theirs, mine)
    merged = merge(base, winner, other)
    return merged.manifest, merged.conflicts


def _merge_values(base: Any, mine: Any, theirs: Any, path: str, merged: Merged) -> Any:
    if theirs in (mine, base):
        return mine
    if mine == base:
        return theirs
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return _merge_maps(base if isinstance(base, dict) else {}, mine, theirs, path, merged)
    # Items of a range have a natural key; entries of other lists have none.
    if (by_type := [_by_type(side) for side in (base, mine, theirs)]) and None not in by_type:
        merged_items = _merge_maps(
            by_type[0] or {}, by_type[1] or {}, by_type[2] or {}, path, merged
        )
        return list(merged_items.values())
    merged.conflicts.append(path)
    return theirs if mine is ABSENT else mine


def _merge_maps(
    base: Mapping[str, Any],
    mine: Mapping[str, Any],
    theirs: Mapping[str, Any],
    path: str,
    merged: Merged,
) -> dict[str, Any]:
    merged_map = {}
    for name in dict.fromkeys([*mine, *theirs]):
        sides = [merge_side.get(name, ABSENT) for merge_side in (base, mine, theirs)]
        merged_path = f"{path}.{name}" if path else name
        merged_map[name] = _merge_values(sides[0], sides[1], sides[2], merged_path, merged)
    return {name: value for name, value in merged_map.items() if value is not ABSENT}


def _by_type(value: Any) -> dict[str, Any] | None:
    """The items of a range by their type; None if two have the same, or one has none."""
    range_items: Sequence[Any] = [] if value is ABSENT else value
    if not isinstance(range_items, list) or not all(isinstance(item, dict) for item in range_items):
        return None
    items_by_type = {str(item.get("type") or ""): item for item in range_items if "type" in item}
    return items_by_type if len(items_by_type) == len(range_items) else None
