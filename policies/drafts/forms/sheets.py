"""Sheet of any form: posted cells, groups, Lines added, removed; Built; metadata, kept, scopes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.policy import (
    ENFORCEMENT_ANNOTATION,
    IN_API_SERVER_ANNOTATION,
    Enforcement,
    InAPIServer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Line = dict[str, str]
LARGEST: Final = 800
"""The most cells of a form: Django reads a thousand fields of one request."""
_MODES: Final = {
    "enforcement": (ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE.value),
    "in_api_server": (IN_API_SERVER_ANNOTATION, InAPIServer.OFF.value),
}
"""The annotations that a form shows as fields, with their defaults."""
_CELL_NAME: Final = re.compile(r"([a-z]+)-(\d{1,5})-([A-Za-z]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The content of a form. A line that belongs to one of another group has that one's number."""

    fields: Line = field(default_factory=dict)
    lines: dict[str, list[Line]] = field(default_factory=dict)

    def of(self, group: str) -> list[Line]:
        """The lines of one group."""
        return self.lines.get(group, [])

    @property
    def size(self) -> int:
        """The number of its cells."""
        return sum(len(line) for lines in self.lines.values() for line in lines)


@dataclass(slots=True)
class Built:
    """The manifest of a sheet, and the cell of each of its paths.

    ``problems`` are inputs that no manifest can express, each with its cell. ``kept`` are the
    places of kept parts in the manifest, by group and by their places in the one before.
    """

    manifest: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    kept: dict[tuple[str, str], str] = field(default_factory=dict)

    def cell_of(self, path: str) -> str:
        """The cell of a finding at this path; empty for none."""
        path_and_parents = (path, *(path[:at] for at, char in enumerate(path) if char in ".["))
        known_places = [place for place in path_and_parents if place in self.places]
        return self.places[max(known_places, key=len)] if known_places else ""


def read_sheet(posted: Mapping[str, str], *, fields: Iterable[str], groups: Iterable[str]) -> Sheet:
    """Read posted fields; lines are numbered anew from 0, also where others name them."""
    wanted_groups = set(groups)
    numbered: dict[str, dict[int, Line]] = {group: {} for group in wanted_groups}
    for posted_name in posted:
        cell = _CELL_NAME.fullmatch(posted_name)
        if cell and cell[1] in wanted_groups:
            line = numbered[cell[1]].setdefault(int(cell[2]), {})
            line[cell[3]] = typed(posted[posted_name])
    # Removed lines leave gaps between the numbers that browsers send.
    new_numbers = {
        group: {str(number): str(place) for place, number in enumerate(sorted(lines))}
        for group, lines in numbered.items()
    }
    lines = {
        group: [found[number] for number in sorted(found)] for group, found in numbered.items()
    }
    for line in (line for found in lines.values() for line in found):
        for parent in line.keys() & new_numbers.keys():
            line[parent] = new_numbers[parent].get(line[parent], "")
    return Sheet({name: typed(posted.get(name, "")) for name in fields}, lines)


def typed(text: str) -> str:
    """A text as a browser sends it back."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def can_be_typed(lines: Iterable[Line]) -> bool:
    """Whether a browser sends every cell back unchanged: one line, no space around it."""
    cells = (cell for line in lines for cell in line.values())
    return all(typed(cell) == cell and "\n" not in cell for cell in cells)


def with_line(sheet: Sheet, group: str, line: Line) -> Sheet:
    """The sheet with one more line."""
    return Sheet(sheet.fields, {**sheet.lines, group: [*sheet.of(group), line]})


def with_cell(sheet: Sheet, cell: str, text: str) -> Sheet:
    """The sheet with another text in a field or a cell; one without such a cell is unchanged."""
    if cell in sheet.fields:
        return Sheet({**sheet.fields, cell: text}, sheet.lines)
    named = _CELL_NAME.fullmatch(cell)
    if named is None or int(named[2]) >= len(sheet.of(named[1])):
        return sheet
    lines = list(sheet.of(named[1]))
    lines[int(named[2])] = {**lines[int(named[2])], named[3]: text}
    return Sheet(sheet.fields, {**sheet.lines, named[1]: lines})


def without_line(sheet: Sheet, group: str, number: int) -> Sheet:
    """The sheet without a line, and without those that belong to it."""
    lines = {name: list(group_lines) for name, group_lines in sheet.lines.items()}
    if number >= len(lines.get(group, [])):
        return sheet
    del lines[group][number]
    for name, group_lines in lines.items():
        lines[name] = [line for line in group_lines if line.get(group) != str(number)]
        for line_index, line in enumerate(lines[name]):
            parent = line.get(group, "")
            if parent.isdecimal() and int(parent) > number:
                lines[name][line_index] = {**line, group: str(int(parent) - 1)}
    return Sheet(sheet.fields, lines)


def renumbered(sheet: Sheet, built: Built) -> Sheet:
    """The sheet whose kept lines name places in the manifest that was built from it."""
    lines = {
        group: [
            {**line, "kept": built.kept.get((group, line["kept"]), line["kept"])}
            if "kept" in line
            else line
            for line in group_lines
        ]
        for group, group_lines in sheet.lines.items()
    }
    return Sheet(sheet.fields, lines)


def joined(values: Iterable[str]) -> str:
    """Several values in one cell."""
    return ", ".join(values)


def split(cell: str) -> list[str]:
    """The values of a cell."""
    return [word for word in (part.strip() for part in cell.split(",")) if word]


def show_metadata(shown_manifest: Mapping[str, Any]) -> Line:
    """The fields of a manifest's metadata."""
    shown_metadata = shown_manifest.get("metadata") or {}
    annotations = shown_metadata.get("annotations") or {}
    shown_modes = {
        cell: str(annotations.get(key, default)) for cell, (key, default) in _MODES.items()
    }
    return {"name": str(shown_metadata.get("name") or ""), **shown_modes}


def build_metadata(sheet: Sheet, base: Mapping[str, Any], built: Built) -> None:
    """Write the fields into the manifest; labels and other annotations stay."""
    built_metadata = dict(base.get("metadata") or {})
    shown_cells = show_metadata(base)
    if sheet.fields.get("name", shown_cells["name"]) != shown_cells["name"]:
        built_metadata["name"] = sheet.fields["name"]
    for cell, (key, default) in _MODES.items():
        typed_mode = sheet.fields.get(cell) or shown_cells[cell]
        if typed_mode != shown_cells[cell]:
            annotations = dict(built_metadata.pop("annotations", None) or {})
            annotations.pop(key, None)
            if typed_mode != default:
                annotations[key] = typed_mode
            built_metadata |= {"annotations": annotations} if annotations else {}
        built.places[f"metadata.annotations[{key}]"] = cell
    built.manifest["metadata"] = built_metadata
    built.places["metadata.name"] = "name"


def kept_metadata(manifest: Mapping[str, Any]) -> list[str]:
    """The parts of the metadata without a field."""
    manifest_metadata = manifest.get("metadata") or {}
    shown_keys = {key for key, _ in _MODES.values()}
    annotations = set(manifest_metadata.get("annotations") or {}) - shown_keys
    kept_by_name = {"labels": manifest_metadata.get("labels"), "annotations": annotations}
    return [name for name, found in kept_by_name.items() if found]


OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_WITH_VALUES: Final = ("In", "NotIn")


def show_scope(number: int, entry: Mapping[str, Any] | None) -> Line:
    """The line of an entry; one that a line cannot express is kept by its number."""
    scope_entry = entry or {}
    scope_line = {
        "scopeName": str(scope_entry.get("scopeName") or ""),
        "operator": str(scope_entry.get("operator") or ""),
        "values": joined(str(value) for value in scope_entry.get("values") or []),
    }
    is_same = can_be_typed([scope_line]) and build_scope(scope_line, []) == entry
    return scope_line if is_same else {"kept": str(number)}


def build_scope(line: Line, kept: Sequence[Any]) -> dict[str, Any] | None:
    """The entry of a line; None for an empty line."""
    if (kept_at := line.get("kept", "")).isdecimal():
        kept_entry: dict[str, Any] | None = kept[int(kept_at)] if int(kept_at) < len(kept) else None
        return kept_entry
    if not line.get("scopeName"):
        return None
    operator = line.get("operator") or "Exists"
    scope_entry: dict[str, Any] = {"scopeName": line["scopeName"], "operator": operator}
    values = split(line.get("values", ""))
    if values or operator in _WITH_VALUES:
        scope_entry["values"] = values
    return scope_entry
