"""Sides of a synced object (base, ours, theirs) as YAML lines; differences as Choices."""

from __future__ import annotations

import datetime as dt
import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.manifests.render import render_documents
from sync.passes.object_sides import present_differences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sync.models import SyncedObject

LONGEST_MANIFEST: Final = 1000
"""Lines of a manifest that are shown: a cluster may send one of any length."""
_FIRST_FIELDS: Final = ("apiVersion", "kind", "metadata", "name", "namespace", "spec")
_FIELD_ORDER: Final = {name: place for place, name in enumerate(_FIRST_FIELDS)}


@dataclass(frozen=True, slots=True)
class Side:
    """One side's manifest in lines; a line is (text, whether the base has it otherwise)."""

    name: str
    title: str
    lines: Sequence[tuple[str, bool]]
    absent: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One field that differs: its value on each side as text, its manager in the cluster."""

    field: str
    base: str
    ours: str
    theirs: str
    manager: str
    time: dt.datetime | None
    number: int


def sides_of(
    base: Mapping[str, Any] | None, ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None
) -> list[Side]:
    """Base, ours and theirs; lines that differ from the base are marked, if there is one."""
    agreed = lines_of_manifest(base)
    return [
        Side("base", "Last agreed", [(line, False) for line in agreed], "Nothing was agreed yet."),
        Side(
            "ours",
            "Ours",
            marked_lines(agreed, lines_of_manifest(ours)),
            "The portal has no such object.",
        ),
        Side(
            "theirs",
            "Theirs",
            marked_lines(agreed, lines_of_manifest(theirs)),
            "The cluster has none.",
        ),
    ]


def choices_of(thing: SyncedObject, ours: Mapping[str, Any] | None) -> list[Choice]:
    """The present differences as choices."""
    present = present_differences(thing, ours)
    return [choice_of(number, difference) for number, difference in enumerate(present)]


def choice_of(number: int, difference: Mapping[str, Any]) -> Choice:
    """One difference, as a pass noted it, with all sides as text."""
    return Choice(
        field=str(difference.get("field", "")),
        base=_side_text(difference.get("base")),
        ours=_side_text(difference.get("ours")),
        theirs=_side_text(difference.get("theirs")),
        manager=str(difference.get("manager") or ""),
        time=_managed_at(difference.get("time")),
        number=number,
    )


def lines_of_manifest(manifest: Mapping[str, Any] | None) -> list[str]:
    """A manifest as people write it, cut where it is very long; nothing for none."""
    if not manifest:
        return []
    lines = render_documents([_manifest_order(manifest)]).split("\n")[:-1]
    left_out = len(lines) - LONGEST_MANIFEST
    return lines if left_out <= 0 else [*lines[:LONGEST_MANIFEST], f"# and {left_out} more lines"]


def _manifest_order(part: Any) -> Any:
    """The customary order of a manifest; JSON columns do not keep one."""
    if isinstance(part, dict):
        names = sorted(part, key=lambda name: (_FIELD_ORDER.get(name, len(_FIELD_ORDER)), name))
        return {name: _manifest_order(part[name]) for name in names}
    return [_manifest_order(part_entry) for part_entry in part] if isinstance(part, list) else part


def marked_lines(base_lines: list[str], lines: list[str]) -> list[tuple[str, bool]]:
    """Each line with whether the other text has it otherwise; nothing differs from no text."""
    if not base_lines:
        return [(line, False) for line in lines]
    # Without autojunk, which takes frequent lines of long texts for differences.
    matcher = difflib.SequenceMatcher(a=base_lines, b=lines, autojunk=False)
    changed_places = {
        line_number
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for line_number in range(start, end)
    }
    return [(line, line_number in changed_places) for line_number, line in enumerate(lines)]


def _managed_at(changed_at: Any) -> dt.datetime | None:
    try:
        change_time = dt.datetime.fromisoformat(str(changed_at))
    except ValueError:
        return None
    # Without a zone the API server means UTC.
    return change_time if change_time.tzinfo else change_time.replace(tzinfo=dt.UTC)


def _side_text(side: Any) -> str:
    if side is None:
        return ""
    return side if isinstance(side, str) else json.dumps(side, ensure_ascii=False, indent=1)
