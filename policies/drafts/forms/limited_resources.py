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


def show(manifest: Mapping[str, Any]) -> Sheet:
    """The lines of a configuration; an entry that lines cannot express is kept."""
    lines: dict[str, list[Line]] = {ENTRY: [], SCOPE: []}
    for number, entry in enumerate(manifest.get("limitedResources") or []):
        shown = _show_entry(number, entry or {})
        if not (can_be_typed(shown[ENTRY]) and _build_entry(shown, 0, str(number)) == entry):
            shown = {ENTRY: [{"kept": str(number)}], SCOPE: []}
        for group, found in shown.items():
            lines[group] += found
    return Sheet({}, lines)


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The configuration of the lines; kept entries come from ``base``."""
    built = Built(dict(base))
    kept = base.get("limitedResources") or []
    entries: list[Any] = []
    for number, line in enumerate(sheet.of(ENTRY)):
        if (place := line.get("kept", "")).isdecimal():
            entries += [kept[int(place)]] if int(place) < len(kept) else []
        elif any(line.get(name) for name in ("resource", "apiGroup", "contains")):
            path = f"limitedResources[{len(entries)}]"
            built.places[path] = f"{ENTRY}-{number}-resource"
            built.places[f"{path}.matchContains"] = f"{ENTRY}-{number}-contains"
            entries.append(_build_entry(sheet.lines, number, str(number)))
    built.manifest["limitedResources"] = entries
    return built


def _show_entry(number: int, entry: Mapping[str, Any]) -> dict[str, list[Line]]:
    line = {
        "resource": str(entry.get("resource") or ""),
        "apiGroup": str(entry.get("apiGroup") or ""),
        "contains": joined(str(word) for word in entry.get("matchContains") or []),
    }
    scopes = [
        {ENTRY: str(number), **show_scope(place, scope)}
        for place, scope in enumerate(entry.get("matchScopes") or [])
    ]
    return {ENTRY: [line], SCOPE: scopes}


def _build_entry(lines: Mapping[str, Sequence[Line]], number: int, parent: str) -> dict[str, Any]:
    line = lines[ENTRY][number]
    mine = [scope for scope in lines.get(SCOPE, []) if scope.get(ENTRY) == parent]
    scopes = [built for scope in mine if (built := build_scope(scope, [])) is not None]
    entry = {
        "apiGroup": line.get("apiGroup", ""),
        "resource": line.get("resource", ""),
        "matchContains": split(line.get("contains", "")),
        "matchScopes": scopes,
    }
    return {name: value for name, value in entry.items() if value}
