"""The three sides of a synced object as YAML lines, and its differences as choices."""

from __future__ import annotations

import datetime as dt
import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.manifests.render import render_documents
from sync import reconcile
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sync.models import SyncedObject

LONGEST: Final = 1000
"""Lines of a manifest that are shown: a cluster may send one of any length."""
_FIRST: Final = ("apiVersion", "kind", "metadata", "name", "namespace", "spec")
_ORDER: Final = {name: place for place, name in enumerate(_FIRST)}


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
    """The present differences as choices, with the manager and base that the last pass noted.

    Where a side is missing, or the kind is only read, the differences of the last pass count.
    """
    noted = dicts_in(thing.differences)
    if ours and thing.theirs and thing.kind in WRITTEN_KINDS:
        by_field = {one.get("field"): one for one in noted}
        noted = [
            {**by_field.get(each.field, {}), "field": each.field, "ours": each.a, "theirs": each.b}
            for each in reconcile.differences(ours, thing.theirs)
        ]
    elif bool(ours) is not bool(thing.theirs):
        noted = noted or [{"field": ""}]
    return [choice_of(number, one) for number, one in enumerate(noted)]


def dicts_in(column: Any) -> list[dict[str, Any]]:
    """The objects in a JSON column that should be a list of them; rows of old may differ."""
    return [one for one in column if isinstance(one, dict)] if isinstance(column, list) else []


def choice_of(number: int, one: Mapping[str, Any]) -> Choice:
    """One difference, as a pass noted it, with all sides as text."""
    return Choice(
        field=str(one.get("field", "")),
        base=_text(one.get("base")),
        ours=_text(one.get("ours")),
        theirs=_text(one.get("theirs")),
        manager=str(one.get("manager") or ""),
        time=_time(one.get("time")),
        number=number,
    )


def normal_form(manifest: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Our side as the passes compare it: defaults applied, quantities in one writing."""
    if manifest is None or manifest.get("kind") not in WRITTEN_KINDS:
        return dict(manifest) if manifest else None
    return reconcile.normal(manifest)


def lines_of_manifest(manifest: Mapping[str, Any] | None) -> list[str]:
    """A manifest as people write it, cut where it is very long; nothing for none."""
    if not manifest:
        return []
    lines = render_documents([_ordered(manifest)]).split("\n")[:-1]
    left_out = len(lines) - LONGEST
    return lines if left_out <= 0 else [*lines[:LONGEST], f"# and {left_out} more lines"]


def _ordered(value: Any) -> Any:
    """The customary order of a manifest; JSON columns do not keep one."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
        return {name: _ordered(value[name]) for name in names}
    return [_ordered(entry) for entry in value] if isinstance(value, list) else value


def marked_lines(agreed: list[str], lines: list[str]) -> list[tuple[str, bool]]:
    """Each line with whether the other text has it otherwise; nothing differs from no text."""
    if not agreed:
        return [(line, False) for line in lines]
    # Without autojunk, which takes frequent lines of long texts for differences.
    matcher = difflib.SequenceMatcher(a=agreed, b=lines, autojunk=False)
    changed = {
        place
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for place in range(start, end)
    }
    return [(line, place in changed) for place, line in enumerate(lines)]


def _time(value: Any) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return None
    # Without a zone the API server means UTC.
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
