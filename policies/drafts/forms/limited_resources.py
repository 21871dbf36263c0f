"""limitedResources form: entry and scope lines to resource, matchContains, matchScopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies.drafts.forms.sheets import (
    Built,
    Sheet,
    build_scope,
    can_be_typed,
    joined,
    show_scope,
    split,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.drafts.forms.sheets import Line

ENTRY: Final = "entry"
SCOPE: Final = "scope"


def show(configuration: Mapping[str, Any]) -> Sheet:
    """The lines of a configuration; an entry that lines cannot express is kept."""
    entry_lines: dict[str, list[Line]] = {ENTRY: [], SCOPE: []}
    for number, entry in enumerate(configuration.get("limitedResources") or []):
        shown = _show_entry(number, entry or {})
        if not (can_be_typed(shown[ENTRY]) and _build_entry(shown, 0, str(number)) == entry):
            shown = {ENTRY: [{"kept": str(number)}], SCOPE: []}
        for group, group_lines in shown.items():
            entry_lines[group] += group_lines
    return Sheet({}, entry_lines)


def build(sheet: Sheet, base_configuration: Mapping[str, Any]) -> Built:
    """The configuration of the lines; kept entries come from ``base_configuration``."""
    built_configuration = Built(dict(base_configuration))
    kept_entries = base_configuration.get("limitedResources") or []
    limited_entries: list[Any] = []
    for number, entry_line in enumerate(sheet.of(ENTRY)):
        if (place := entry_line.get("kept", "")).isdecimal():
            built_configuration.kept[ENTRY, place] = str(len(limited_entries))
            limited_entries += [kept_entries[int(place)]] if int(place) < len(kept_entries) else []
        elif any(entry_line.get(name) for name in ("resource", "apiGroup", "contains")):
            entry_path = f"limitedResources[{len(limited_entries)}]"
            built_configuration.places[entry_path] = f"{ENTRY}-{number}-resource"
            built_configuration.places[f"{entry_path}.matchContains"] = f"{ENTRY}-{number}-contains"
            limited_entries.append(_build_entry(sheet.lines, number, str(number)))
    built_configuration.manifest["limitedResources"] = limited_entries
    return built_configuration


def _show_entry(number: int, entry: Mapping[str, Any]) -> dict[str, list[Line]]:
    entry_line = {
        "resource": str(entry.get("resource") or ""),
        "apiGroup": str(entry.get("apiGroup") or ""),
        "contains": joined(str(word) for word in entry.get("matchContains") or []),
    }
    match_scopes = [
        {ENTRY: str(number), **show_scope(place, scope)}
        for place, scope in enumerate(entry.get("matchScopes") or [])
    ]
    return {ENTRY: [entry_line], SCOPE: match_scopes}


def _build_entry(lines: Mapping[str, Sequence[Line]], number: int, parent: str) -> dict[str, Any]:
    entry_line = lines[ENTRY][number]
    own_scopes = [scope for scope in lines.get(SCOPE, []) if scope.get(ENTRY) == parent]
    match_scopes = [built for scope in own_scopes if (built := build_scope(scope, [])) is not None]
    limited_entry = {
        "apiGroup": entry_line.get("apiGroup", ""),
        "resource": entry_line.get("resource", ""),
        "matchContains": split(entry_line.get("contains", "")),
        "matchScopes": match_scopes,
    }
    return {name: value for name, value in limited_entry.items() if value}
