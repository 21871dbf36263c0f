"""LimitRange form: row lines of type, resource, AMOUNTS to limit items and back; defaults."""

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


def show(range_manifest: Mapping[str, Any]) -> Sheet:
    """The grid of a manifest; an item that lines cannot express is one line that keeps it."""
    row_lines: list[Line] = []
    for number, item in enumerate(_limits(range_manifest)):
        item_lines = _lines_of_item(number, item)
        # Only lines that build the same item again may stand for it.
        if can_be_typed(item_lines) and _limit_items(item_lines, [], Built({})) == [item]:
            row_lines += item_lines
        else:
            item_type = str((item or {}).get("type") or "")
            row_lines.append({"item": str(number), "kept": str(number), "type": item_type})
    return Sheet(show_metadata(range_manifest), {ROW: row_lines})


def build(sheet: Sheet, base_range: Mapping[str, Any]) -> Built:
    """The manifest of a grid; kept items come from ``base_range``."""
    built_range = Built(dict(base_range))
    build_metadata(sheet, base_range, built_range)
    built_limits = _limit_items(sheet.of(ROW), _limits(base_range), built_range)
    built_range.manifest["spec"] = {**(base_range.get("spec") or {}), "limits": built_limits}
    return built_range


def derived(sheet: Sheet) -> dict[str, str]:
    """The defaults of Kubernetes for empty cells, by cell; unreadable amounts count as none."""
    derived_cells: dict[str, str] = {}
    for number, line in enumerate(sheet.of(ROW)):
        typed = {name: quantity for name in AMOUNTS if (quantity := _quantity(line.get(name, "")))}
        engine_amounts = {_ENGINE_FIELDS[name]: {"r": quantity} for name, quantity in typed.items()}
        defaulted_item = default_item(LimitRangeItem(type=line.get("type", ""), **engine_amounts))
        for name in ("default", "defaultRequest"):
            default_texts = to_json(getattr(defaulted_item, _ENGINE_FIELDS[name]))
            if not line.get(name) and default_texts:
                derived_cells[f"{ROW}-{number}-{name}"] = default_texts["r"]
    return derived_cells


_ENGINE_FIELDS: Final = {
    "min": "min",
    "max": "max",
    "default": "default",
    "defaultRequest": "default_request",
    "maxLimitRequestRatio": "max_limit_request_ratio",
}


def _limits(range_manifest: Mapping[str, Any]) -> Sequence[Any]:
    return (range_manifest.get("spec") or {}).get("limits") or []


def _lines_of_item(number: int, limit: Mapping[str, Any] | None) -> list[Line]:
    """The lines of one item, resources in the order in which they first appear."""
    limit = limit or {}
    item_resources = dict.fromkeys(name for amount in AMOUNTS for name in limit.get(amount) or {})
    return [
        {
            "item": str(number),
            "type": str(limit.get("type") or ""),
            "resource": name,
            **{
                amount: "" if (value := (limit.get(amount) or {}).get(name)) is None else str(value)
                for amount in AMOUNTS
            },
        }
        for name in item_resources or [""]
    ]


def _limit_items(row_lines: Sequence[Line], base: Sequence[Any], built: Built) -> list[Any]:
    limit_items: list[_LimitItem] = []
    for number, row_line in enumerate(row_lines):
        if (kept_number := row_line.get("kept", "")).isdecimal():
            if int(kept_number) < len(base):
                built.kept[ROW, kept_number] = str(len(limit_items))
                limit_items.append(_LimitItem(f"kept {kept_number}", "", base[int(kept_number)]))
            continue
        if any(row_line.get(name) for name in ("item", "resource", *AMOUNTS)):
            _add_line(limit_items, row_line, number, built)
    return [limit_item.value for limit_item in limit_items]


def _add_line(limit_items: list[_LimitItem], line: Line, number: int, built: Built) -> None:
    """Add a line to the item it came from, a new line to an item of its type."""
    name, row_type, item = line.get("resource", ""), line.get("type", ""), line.get("item", "")
    cell = f"{ROW}-{number}"
    same_type = [part for part in limit_items if part.type == row_type and item in (part.item, "")]
    part = next((part for part in same_type if name not in part.resources), None)
    if part is None:
        if same_type and name:
            built.problems.append((f"{cell}-resource", f"{name} has a line for {row_type} already"))
        part = _LimitItem(item, row_type, {"type": row_type})
        limit_items.append(part)
    part.resources.add(name)
    limit_path = f"spec.limits[{limit_items.index(part)}]"
    built.places.setdefault(limit_path, f"{cell}-type")
    for amount in AMOUNTS:
        if text := line.get(amount, ""):
            part.value.setdefault(amount, {})[name] = text
        built.places[f"{limit_path}.{amount}[{name}]"] = f"{cell}-{amount}"
        built.places.setdefault(f"{limit_path}.{amount}", f"{cell}-{amount}")


def _quantity(text: str) -> Quantity | None:
    try:
        return Quantity.parse(text) if text else None
    except QuantityError:
        return None
