"""One scope requirement as a line of a form: scope, operator, values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies.drafts.forms.sheets import can_be_typed, joined, split

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.drafts.forms.sheets import Line

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_WITH_VALUES: Final = ("In", "NotIn")


def show_scope(number: int, entry: Mapping[str, Any] | None) -> Line:
    """The line of an entry; one that a line cannot say is kept by its number."""
    given = entry or {}
    line = {
        "scopeName": str(given.get("scopeName") or ""),
        "operator": str(given.get("operator") or ""),
        "values": joined(str(value) for value in given.get("values") or []),
    }
    is_said = can_be_typed([line]) and build_scope(line, []) == entry
    return line if is_said else {"kept": str(number)}


def build_scope(line: Line, kept: Sequence[Any]) -> dict[str, Any] | None:
    """The entry of a line; None for an empty line."""
    if (place := line.get("kept", "")).isdecimal():
        found: dict[str, Any] | None = kept[int(place)] if int(place) < len(kept) else None
        return found
    if not line.get("scopeName"):
        return None
    operator = line.get("operator") or "Exists"
    entry: dict[str, Any] = {"scopeName": line["scopeName"], "operator": operator}
    values = split(line.get("values", ""))
    if values or operator in _WITH_VALUES:
        entry["values"] = values
    return entry
