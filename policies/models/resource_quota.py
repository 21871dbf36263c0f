"""Tables ResourceQuota, its hard rows, ScopeSelectorRow, LimitedResource; quota ``status``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from engine.resource_quota import (
    decode_resource_quota,
    scope_value_errors,
    update_errors,
    validate_resource_quota,
)
from policies.fields import QuantityField, QuantityValue
from policies.models.cluster import Cluster
from policies.models.policy_object import PolicyObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.errors import FieldError
    from policies.validators import Place

_HARD_PATH = re.compile(r"spec\.hard\[(.*)\]", re.DOTALL)
_SELECTOR_PATH = "spec.scopeSelector"
_EXPRESSION_COLUMNS = {"scopeName": "scope_name", "operator": "operator", "values": "values"}


class ResourceQuota(PolicyObject):
    """Limits of one namespace, for all its objects or those that the scopes select."""

    kind = "ResourceQuota"
    row_sets = ("rows", "scope_rows")

    is_native = models.BooleanField(
        default=False, editable=False, help_text="whether the object is in the cluster as well"
    )
    uncounted = models.JSONField(
        default=list,
        blank=True,
        editable=False,
        help_text="resources in hard whose existing objects are not counted yet",
    )
    scopes = models.JSONField(default=list, blank=True)
    has_scope_selector = models.BooleanField(
        default=False, help_text="whether the manifest has a scopeSelector, even an empty one"
    )

    class Meta(PolicyObject.Meta):
        pass

    def to_manifest(self) -> dict[str, Any]:
        """The object as Kubernetes writes it, quantities as typed, without status."""
        quota_spec: dict[str, Any] = {}
        if hard_rows := self.rows_of("rows"):
            quota_spec["hard"] = {row.resource: _hard_json(row.hard) for row in hard_rows}
        if self.scopes:
            quota_spec["scopes"] = self.scopes
        scope_rows = sorted(self.rows_of("scope_rows"), key=lambda row: row.position)
        if scope_rows or self.has_scope_selector:
            entries = [row.to_manifest() for row in scope_rows]
            quota_spec["scopeSelector"] = {"matchExpressions": entries} if entries else {}
        return {
            "apiVersion": "v1",
            "kind": self.kind,
            "metadata": self.metadata(),
            "spec": quota_spec,
        }

    def status(self) -> dict[str, Any]:
        """``status`` of the manifest; ``used`` lacks the names that are not counted yet."""
        usage = getattr(self, "usage", None)
        used = dict(usage.used) if usage else {}
        hard = {row.resource: _hard_json(row.hard) for row in self.rows_of("rows")}
        return {
            "hard": hard,
            "used": {name: used[name] for name in used if name not in self.uncounted},
        }

    def read_manifest(self, quota_manifest: Mapping[str, Any]) -> Self:
        """Set everything, rows as a draft; raises ``DecodeError`` or ``ValidationError``."""
        decode_resource_quota(quota_manifest)
        self.read_metadata(quota_manifest)
        quota_spec = quota_manifest.get("spec") or {}
        selector = quota_spec.get("scopeSelector")
        self.scopes = list(quota_spec.get("scopes") or [])
        self.has_scope_selector = selector is not None
        hard_entries = (quota_spec.get("hard") or {}).items()
        self.draft_rows("rows", [ResourceQuotaRow.of_manifest(*entry) for entry in hard_entries])
        entries = enumerate((selector or {}).get("matchExpressions") or [])
        scope_rows = [
            ScopeSelectorRow.of_manifest(position, entry or {}) for position, entry in entries
        ]
        self.draft_rows("scope_rows", scope_rows)
        return self

    def rule_errors(self, quota_manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Validate by the engine, also what may change of a stored quota."""
        quota = decode_resource_quota(quota_manifest)
        quota_errors = [*validate_resource_quota(quota), *scope_value_errors(quota)]
        if self.replaces is not None:
            quota_errors += update_errors(decode_resource_quota(self.replaces.to_manifest()), quota)
        return quota_errors

    def locate(self, quota_error: FieldError) -> Place:
        """Find the row of an error: ``spec.hard[pods]`` is the row of pods."""
        if hard_match := _HARD_PATH.fullmatch(quota_error.field):
            names = [row.resource for row in self.rows_of("rows")]
            column = "resource" if quota_error.bad_value == hard_match[1] else "hard"
            return ("rows", names.index(hard_match[1]) if hard_match[1] in names else None, column)
        if quota_error.field.startswith(_SELECTOR_PATH):
            column = quota_error.field.rpartition(".")[2]
            return ("scope_rows", None, _EXPRESSION_COLUMNS.get(column, ""))
        if quota_error.field == "spec.scopes":
            return ("", None, "scopes")
        return super().locate(quota_error)

    def path_of(self, row: Any, row_set: str, index: int, column: str, /) -> str:
        """The path of a cell in the manifest."""
        if row_set == "rows":
            return f"spec.hard[{row.resource}]"
        return super().path_of(row, row_set, index, column)


class ResourceQuotaRow(models.Model):
    """One resource of a quota and its limit; ``QuotaUsage`` holds what is used of it."""

    quota = models.ForeignKey(ResourceQuota, models.CASCADE, related_name="rows")
    resource = models.CharField(max_length=317)
    hard = QuantityField(blank=False, null=False)

    class Meta:
        ordering: ClassVar = ["quota_id", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["quota", "resource"], name="resourcequotarow_resource_once"
            )
        ]

    def __str__(self) -> str:
        return self.resource

    @classmethod
    def of_manifest(cls, resource: str, hard_value: object) -> ResourceQuotaRow:
        """Read one entry of ``spec.hard``."""
        hard_row = cls(resource=resource)
        hard_row.hard = QuantityValue("" if hard_value is None else str(hard_value))
        return hard_row


class ScopeSelectorRow(models.Model):
    """One entry of ``scopeSelector.matchExpressions``; ``values`` NULL means not given."""

    quota = models.ForeignKey(ResourceQuota, models.CASCADE, related_name="scope_rows")
    position = models.PositiveIntegerField(default=0)
    scope_name = models.CharField(max_length=63, blank=True)
    operator = models.CharField(max_length=63, blank=True)
    values = models.JSONField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["quota_id", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["quota", "position"], name="scopeselectorrow_position_once"
            ),
            models.CheckConstraint(
                condition=Q(operator__in=["In", "NotIn", "Exists", "DoesNotExist"]),
                name="scopeselectorrow_operator_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope_name} {self.operator}"

    def to_manifest(self) -> dict[str, Any]:
        """The expression as the manifest writes it."""
        match_expression: dict[str, Any] = {"scopeName": self.scope_name, "operator": self.operator}
        if self.values is not None:
            match_expression["values"] = self.values
        return match_expression

    @classmethod
    def of_manifest(cls, position: int, entry: Mapping[str, Any]) -> ScopeSelectorRow:
        """Read one expression."""
        return cls(
            position=position,
            scope_name=entry.get("scopeName") or "",
            operator=entry.get("operator") or "",
            values=entry.get("values"),
        )


class LimitedResource(models.Model):
    """One entry of the cluster's ``limitedResources``."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="limited_resources")
    position = models.PositiveIntegerField()
    api_group = models.CharField(max_length=253, blank=True)
    resource = models.CharField(max_length=253)
    match_contains = models.JSONField(default=list, blank=True)
    match_scopes = models.JSONField(default=list, blank=True)

    class Meta:
        ordering: ClassVar = ["cluster_id", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "position"], name="limitedresource_position_once"
            ),
            models.CheckConstraint(condition=~Q(resource=""), name="limitedresource_has_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.resource}.{self.api_group}" if self.api_group else self.resource

    def to_manifest(self) -> dict[str, Any]:
        """The entry as the quota plugin's configuration writes it."""
        limited_entry = {
            "apiGroup": self.api_group,
            "resource": self.resource,
            "matchContains": self.match_contains,
            "matchScopes": self.match_scopes,
        }
        return {name: value for name, value in limited_entry.items() if value}


def _hard_json(value: object) -> str | None:
    return None if value is None else str(value) or None
