"""Sheet, Line, Built: cells read from sent fields, lines added or removed, metadata, scopes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.policy import ENFORCEMENT_ANNOTATION, Enforcement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Line = dict[str, str]
LARGEST: Final = 800
"""The most cells of a form: Django reads a thousand fields of one request."""
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

    ``problems`` are inputs that no manifest can express, each with its cell.
    """

    manifest: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def cell_of(self, path: str) -> str:
        """The cell of a finding at this path; empty for none."""
        inside = (path, *(path[:at] for at, char in enumerate(path) if char in ".["))
        known = [place for place in inside if place in self.places]
        return self.places[max(known, key=len)] if known else ""


def read_sheet(data: Mapping[str, str], *, fields: Iterable[str], groups: Iterable[str]) -> Sheet:
    """Read posted fields; lines are numbered anew from 0, also where others name them."""
    wanted = set(groups)
    numbered: dict[str, dict[int, Line]] = {group: {} for group in wanted}
    for key in data:
        found = _CELL_NAME.fullmatch(key)
        if found and found[1] in wanted:
            line = numbered[found[1]].setdefault(int(found[2]), {})
            line[found[3]] = typed(data[key])
    # Removed lines leave gaps between the numbers that browsers send.
    anew = {
        group: {str(number): str(place) for place, number in enumerate(sorted(lines))}
        for group, lines in numbered.items()
    }
    lines = {
        group: [found[number] for number in sorted(found)] for group, found in numbered.items()
    }
    for line in (line for found in lines.values() for line in found):
        for parent in line.keys() & anew.keys():
            line[parent] = anew[parent].get(line[parent], "")
    return Sheet({name: typed(data.get(name, "")) for name in fields}, lines)


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


def without_line(sheet: Sheet, group: str, number: int) -> Sheet:
    """The sheet without a line, and without those that belong to it."""
    lines = {name: list(found) for name, found in sheet.lines.items()}
    if number >= len(lines.get(group, [])):
        return sheet
    del lines[group][number]
    for name, found in lines.items():
        lines[name] = [line for line in found if line.get(group) != str(number)]
        for at, line in enumerate(lines[name]):
            parent = line.get(group, "")
            if parent.isdecimal() and int(parent) > number:
                lines[name][at] = {**line, group: str(int(parent) - 1)}
    return Sheet(sheet.fields, lines)


def joined(values: Iterable[str]) -> str:
    """Several values in one cell."""
    return ", ".join(values)


def split(cell: str) -> list[str]:
    """The values of a cell."""
    return [word for word in (part.strip() for part in cell.split(",")) if word]


def show_metadata(manifest: Mapping[str, Any]) -> Line:
    """The fields of a manifest's metadata."""
    metadata = manifest.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    given = str(annotations.get(ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE))
    return {"name": str(metadata.get("name") or ""), "enforcement": given}


def build_metadata(sheet: Sheet, base: Mapping[str, Any], built: Built) -> None:
    """Write the fields into the manifest; labels and other annotations stay."""
    metadata = dict(base.get("metadata") or {})
    shown = show_metadata(base)
    if sheet.fields.get("name", shown["name"]) != shown["name"]:
        metadata["name"] = sheet.fields["name"]
    mode = sheet.fields.get("enforcement") or shown["enforcement"]
    if mode != shown["enforcement"]:
        annotations = dict(metadata.pop("annotations", None) or {})
        annotations.pop(ENFORCEMENT_ANNOTATION, None)
        if mode != Enforcement.ENFORCE:
            annotations[ENFORCEMENT_ANNOTATION] = mode
        metadata |= {"annotations": annotations} if annotations else {}
    built.manifest["metadata"] = metadata
    built.places["metadata.name"] = "name"
    built.places[f"metadata.annotations[{ENFORCEMENT_ANNOTATION}]"] = "enforcement"


def kept_metadata(manifest: Mapping[str, Any]) -> list[str]:
    """The parts of the metadata without a field."""
    metadata = manifest.get("metadata") or {}
    annotations = set(metadata.get("annotations") or {}) - {ENFORCEMENT_ANNOTATION}
    named = {"labels": metadata.get("labels"), "annotations": annotations}
    return [name for name, found in named.items() if found]


OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_WITH_VALUES: Final = ("In", "NotIn")


def show_scope(number: int, entry: Mapping[str, Any] | None) -> Line:
    """The line of an entry; one that a line cannot express is kept by its number."""
    given = entry or {}
    line = {
        "scopeName": str(given.get("scopeName") or ""),
        "operator": str(given.get("operator") or ""),
        "values": joined(str(value) for value in given.get("values") or []),
    }
    is_same = can_be_typed([line]) and build_scope(line, []) == entry
    return line if is_same else {"kept": str(number)}


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
