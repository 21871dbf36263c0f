"""LimitRange form: ``row`` lines of type, resource, min, max to ``spec.limits`` and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.limit_range import default_item
from engine.policy import LimitRangeItem
from engine.quantity import Quantity, QuantityError
from engine.resource_list import to_json
from policies.drafts.forms.sheets import Built, Sheet, build_metadata, can_be_typed, show_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.drafts.forms.sheets import Line

ROW: Final = "row"
AMOUNTS: Final = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
TYPES: Final = ("Container", "Pod", "PersistentVolumeClaim")


@dataclass(slots=True)
class _LimitItem:
    """One item under construction."""

    item: str
    type: str
    value: dict[str, Any]
    resources: set[str] = field(default_factory=set)


def show(manifest: Mapping[str, Any]) -> Sheet:
    """The grid of a manifest; an item that lines cannot express is one line that keeps it."""
    rows: list[Line] = []
    for number, item in enumerate(_limits(manifest)):
        lines = _lines_of_item(number, item)
        # Only lines that build the same item again may stand for it.
        if can_be_typed(lines) and _limit_items(lines, [], Built({})) == [item]:
            rows += lines
        else:
            kind = str((item or {}).get("type") or "")
            rows.append({"item": str(number), "kept": str(number), "type": kind})
    return Sheet(show_metadata(manifest), {ROW: rows})


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The manifest of a grid; kept items come from ``base``."""
    built = Built(dict(base))
    build_metadata(sheet, base, built)
    limits = _limit_items(sheet.of(ROW), _limits(base), built)
    built.manifest["spec"] = {**(base.get("spec") or {}), "limits": limits}
    return built


def derived(sheet: Sheet) -> dict[str, str]:
    """The defaults of Kubernetes for empty cells, by cell; unreadable amounts count as none."""
    derived_cells: dict[str, str] = {}
    for number, line in enumerate(sheet.of(ROW)):
        given = {name: quantity for name in AMOUNTS if (quantity := _quantity(line.get(name, "")))}
        amounts = {_ENGINE_FIELDS[name]: {"r": quantity} for name, quantity in given.items()}
        item = default_item(LimitRangeItem(type=line.get("type", ""), **amounts))
        for name in ("default", "defaultRequest"):
            texts = to_json(getattr(item, _ENGINE_FIELDS[name]))
            if not line.get(name) and texts:
                derived_cells[f"{ROW}-{number}-{name}"] = texts["r"]
    return derived_cells


_ENGINE_FIELDS: Final = {
    "min": "min",
    "max": "max",
    "default": "default",
    "defaultRequest": "default_request",
    "maxLimitRequestRatio": "max_limit_request_ratio",
}


def _limits(manifest: Mapping[str, Any]) -> Sequence[Any]:
    return (manifest.get("spec") or {}).get("limits") or []


def _lines_of_item(number: int, item: Mapping[str, Any] | None) -> list[Line]:
    """The lines of one item, resources in the order in which they first appear."""
    item = item or {}
    names = dict.fromkeys(name for amount in AMOUNTS for name in item.get(amount) or {})
    return [
        {
            "item": str(number),
            "type": str(item.get("type") or ""),
            "resource": name,
            **{
                amount: "" if (value := (item.get(amount) or {}).get(name)) is None else str(value)
                for amount in AMOUNTS
            },
        }
        for name in names or [""]
    ]


def _limit_items(lines: Sequence[Line], kept: Sequence[Any], built: Built) -> list[Any]:
    parts: list[_LimitItem] = []
    for number, line in enumerate(lines):
        if (place := line.get("kept", "")).isdecimal():
            if int(place) < len(kept):
                parts.append(_LimitItem(f"kept {place}", "", kept[int(place)]))
            continue
        if any(line.get(name) for name in ("item", "resource", *AMOUNTS)):
            _add_line(parts, line, number, built)
    return [part.value for part in parts]


def _add_line(parts: list[_LimitItem], line: Line, number: int, built: Built) -> None:
    """Add a line to the item it came from, a new line to an item of its type."""
    name, kind, item = line.get("resource", ""), line.get("type", ""), line.get("item", "")
    cell = f"{ROW}-{number}"
    same = [part for part in parts if part.type == kind and item in (part.item, "")]
    part = next((part for part in same if name not in part.resources), None)
    if part is None:
        if same and name:
            built.problems.append((f"{cell}-resource", f"{name} has a line for {kind} already"))
        part = _LimitItem(item, kind, {"type": kind})
        parts.append(part)
    part.resources.add(name)
    path = f"spec.limits[{parts.index(part)}]"
    built.places.setdefault(path, f"{cell}-type")
    for amount in AMOUNTS:
        if text := line.get(amount, ""):
            part.value.setdefault(amount, {})[name] = text
        built.places[f"{path}.{amount}[{name}]"] = f"{cell}-{amount}"
        built.places.setdefault(f"{path}.{amount}", f"{cell}-{amount}")


def _quantity(text: str) -> Quantity | None:
    try:
        return Quantity.parse(text) if text else None
    except QuantityError:
        return None
