"""Tables LimitRange and LimitRangeRow: limits items to rows and back, errors placed in rows.

Defaults that the API server derives (``default`` from ``max``, …) are not stored: the rows keep
what was typed, and the engine derives the rest each time the range is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from engine.errors import ErrorType, FieldError
from engine.limit_range import decode_limit_range, validate_limit_range
from policies.fields import QuantityField, QuantityValue
from policies.models.compilable import CompilablePolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.validators import Place

MAPS = {
    "min": "min",
    "max": "max",
    "default": "default",
    "defaultRequest": "default_request",
    "maxLimitRequestRatio": "max_limit_request_ratio",
}
"""The five maps of an item, in today's names, and the rows' fields."""
OLD_NAMES = {"defaultRequest": "defaultRequests", "maxLimitRequestRatio": "limitRequestRatio"}
_LIMITS_PATH = re.compile(r"spec\.limits\[(\d+)\](?:\.(\w+)(?:\[(.*)\])?)?", re.DOTALL)


class LimitRange(CompilablePolicy):
    """Minimum, maximum and default amounts for one namespace."""

    kind = "LimitRange"
    row_sets = ("rows",)

    is_native = models.BooleanField(
        default=False, editable=False, help_text="whether the object is in the cluster as well"
    )

    class Meta(CompilablePolicy.Meta):
        pass

    def to_manifest(self) -> dict[str, Any]:
        """The object as Kubernetes writes it, quantities as typed."""
        items_by_position: dict[int, dict[str, Any]] = {}
        for row in sorted(self.rows_of("rows"), key=lambda row: row.position):
            row.add_to(items_by_position.setdefault(row.position, {"type": row.type}))
        return {
            "apiVersion": "v1",
            "kind": self.kind,
            "metadata": self.metadata(),
            "spec": {"limits": list(items_by_position.values())},
        }

    def read_manifest(self, range_manifest: Mapping[str, Any]) -> Self:
        """Set everything, rows as a draft; raises ``DecodeError`` or ``ValidationError``."""
        decode_limit_range(range_manifest)
        self.read_metadata(range_manifest)
        items = (range_manifest.get("spec") or {}).get("limits") or []
        rows = [row for i, item in enumerate(items) for row in LimitRangeRow.of_item(i, item or {})]
        self.draft_rows("rows", rows)
        return self

    def rule_errors(self, range_manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Validate by the engine, and that the rows of one item have one type."""
        errors = list(validate_limit_range(decode_limit_range(range_manifest)))
        types: dict[int, set[str]] = {}
        for row in self.rows_of("rows"):
            types.setdefault(row.position, set()).add(row.type)
        for item_index, position in enumerate(sorted(types)):
            if len(types[position]) > 1:
                detail = "the rows of one item must have one type"
                place = f"spec.limits[{item_index}].type"
                errors.append(FieldError(ErrorType.INVALID, place, sorted(types[position]), detail))
        return errors

    def locate(self, range_error: FieldError) -> Place:
        """Find the row of an error: ``spec.limits[i].max[cpu]`` is row (i, cpu), field ``max``."""
        limits_match = _LIMITS_PATH.fullmatch(range_error.field)
        if not limits_match:
            return super().locate(range_error)
        item, name, resource = int(limits_match[1]), limits_match[2], limits_match[3]
        limit_column = MAPS.get(name or "", "min" if name == "limits" else "type")
        if resource is not None and range_error.bad_value == resource:
            limit_column = "resource"
        rows = self.rows_of("rows")
        # Positions may have gaps: the manifest counts items, the rows keep the typed position.
        positions = sorted({row.position for row in rows})
        position = positions[item] if item < len(positions) else item
        rows_of_item = [index for index, row in enumerate(rows) if row.position == position]
        rows_of_resource = [index for index in rows_of_item if rows[index].resource == resource]
        return ("rows", next(iter(rows_of_resource or rows_of_item), None), limit_column)

    def path_of(self, row: LimitRangeRow, row_set: str, _index: int, column: str, /) -> str:
        """The path of a cell in the manifest."""
        manifest_names = {field: name for name, field in MAPS.items()}
        item_index = sorted({row.position for row in self.rows_of(row_set)}).index(row.position)
        if column not in manifest_names:
            return f"spec.limits[{item_index}].{column}"
        return f"spec.limits[{item_index}].{manifest_names[column]}[{row.resource}]"


class LimitRangeRow(models.Model):
    """One resource of one item; an item without resources has one row whose resource is empty."""

    limit_range = models.ForeignKey(LimitRange, models.CASCADE, related_name="rows")
    position = models.PositiveIntegerField(default=0, help_text="index in spec.limits")
    type = models.CharField(max_length=317, blank=True, default="Container")
    resource = models.CharField(max_length=317, blank=True)
    min = QuantityField()
    max = QuantityField()
    default = QuantityField()
    default_request = QuantityField()
    max_limit_request_ratio = QuantityField()

    class Meta:
        ordering: ClassVar = ["limit_range_id", "position", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["limit_range", "position", "resource"], name="limitrangerow_resource_once"
            ),
            models.CheckConstraint(
                condition=~Q(resource="")
                | Q(
                    min=None,
                    max=None,
                    default=None,
                    default_request=None,
                    max_limit_request_ratio=None,
                ),
                name="limitrangerow_amounts_need_a_resource",
                violation_error_message="amounts need a resource",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.resource}".strip()

    def add_to(self, item: dict[str, Any]) -> None:
        """Write this row's amounts into its item."""
        for name, column in MAPS.items():
            quantity_value: QuantityValue | None = getattr(self, column)
            if quantity_value is not None:
                item.setdefault(name, {})[self.resource] = QuantityValue(str(quantity_value)).json

    @classmethod
    def of_item(cls, position: int, item: Mapping[str, Any]) -> list[LimitRangeRow]:
        """The rows of one item, in the order in which its resources first appear."""
        columns_of_resource: dict[str, dict[str, QuantityValue]] = {}
        for name, column in MAPS.items():
            given_amounts = item.get(name) or item.get(OLD_NAMES.get(name, name)) or {}
            for resource, value in given_amounts.items():
                quantity_text = "" if value is None else str(value)
                columns_of_resource.setdefault(resource, {})[column] = QuantityValue(quantity_text)
        item_type = item.get("type") or ""
        return [
            cls(position=position, type=item_type, resource=resource, **columns)
            for resource, columns in (columns_of_resource or {"": {}}).items()
        ]
