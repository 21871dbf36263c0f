"""ChangedCells of a draft's form: the cells that differ from the stored policy, and their past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.drafts.forms import limit_range, namespace_class, quota
from policies.drafts.kinds import LIMIT_RANGE, NAMESPACE_CLASS, RESOURCE_QUOTA
from policies.manifests.diff_in_words import AMOUNT_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.drafts.draft import Draft, EditedPlace
    from policies.drafts.forms.sheets import Line, Sheet

_FIELD_WORDS: Final = {
    "enforcement": "mode",
    "in_api_server": "enforcement in the API server",
    "value": "value",
    "preemptionPolicy": "preemption",
    "description": "description",
    "clusters": "cluster patterns",
    "names": "name patterns",
    "labels": "label selector",
    "onLeave": "what leaving does",
}

_CHOICES: Final = frozenset({"enforcement", "in_api_server", "onLeave"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCell:
    """A cell of the form, what it stands for, and its stored text; empty where it had none."""

    cell: str
    words: str
    was: str


def changed_cells(
    place: EditedPlace, draft: Draft, stored: Mapping[str, Any] | None
) -> list[ChangedCell]:
    """The changed cells, in the order of the form; none of a new policy, or without a form."""
    if stored is None or draft.sheet is None:
        return []
    before = place.kind.show(stored)
    found = [*_fields(draft.sheet, before)]
    if place.kind is LIMIT_RANGE:
        found += _amounts(draft.sheet, before)
    elif place.kind is RESOURCE_QUOTA:
        found += _limits(draft.sheet, before)
    elif place.kind is NAMESPACE_CLASS:
        found += _defaults(draft.sheet, before)
    return found


def _fields(sheet: Sheet, before: Sheet) -> Iterator[ChangedCell]:
    for name, words in _FIELD_WORDS.items():
        was = before.fields.get(name, "")
        # A choice that was not sent is no choice.
        now = sheet.fields.get(name, was) or (was if name in _CHOICES else "")
        if now != was:
            yield ChangedCell(cell=name, words=words, was=was)


def _amounts(sheet: Sheet, before: Sheet) -> Iterator[ChangedCell]:
    """Amounts of lines that stood there before: a new line has no past."""
    stored_lines = {_range_key(line): line for line in before.of(limit_range.ROW)}
    for number, line in enumerate(sheet.of(limit_range.ROW)):
        stored_line = stored_lines.get(_range_key(line))
        if stored_line is None or "kept" in line:
            continue
        for amount in limit_range.AMOUNTS:
            was = stored_line.get(amount, "")
            if line.get(amount, "") != was:
                words = f"{AMOUNT_WORDS[amount]} of {line['resource']}"
                cell = f"{limit_range.ROW}-{number}-{amount}"
                yield ChangedCell(cell=cell, words=words, was=was)


def _limits(sheet: Sheet, before: Sheet) -> Iterator[ChangedCell]:
    stored_amounts = {
        line["resource"]: line["amount"] for line in before.of(quota.HARD) if "kept" not in line
    }
    for number, line in enumerate(sheet.of(quota.HARD)):
        was = stored_amounts.get(line.get("resource", ""))
        if was is not None and line.get("amount", "") != was:
            words = f"limit of {line['resource']}"
            yield ChangedCell(cell=f"{quota.HARD}-{number}-amount", words=words, was=was)


def _defaults(sheet: Sheet, before: Sheet) -> Iterator[ChangedCell]:
    group = namespace_class.PARAMETER
    stored_defaults = {line["name"]: line["default"] for line in before.of(group) if "name" in line}
    for number, line in enumerate(sheet.of(group)):
        was = stored_defaults.get(line.get("name", ""))
        if was is not None and line.get("default", "") != was:
            words = f"default of {line['name']}"
            yield ChangedCell(cell=f"{group}-{number}-default", words=words, was=was)


def _range_key(line: Line) -> tuple[str, str]:
    return line.get("type", ""), line.get("resource", "")
