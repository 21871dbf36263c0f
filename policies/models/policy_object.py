"""Abstract PolicyObject: namespace, enforcement annotation, drafted rows and their findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from engine.errors import ErrorType, FieldError
from engine.policy import ENFORCEMENT_ANNOTATION, Enforcement, encode_enforcement
from policies.models.cluster import Labelled
from policies.validators import PlacedError, as_validation_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.models.cluster import Cluster


class PolicyObject(Labelled):
    """A policy of one namespace, with rows that are saved together with it."""

    row_sets: ClassVar[tuple[str, ...]] = ()

    namespace = models.ForeignKey("policies.Namespace", models.PROTECT, related_name="%(class)ss")
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    enforcement = models.CharField(
        max_length=8,
        choices=[(mode.value, mode.value) for mode in Enforcement],
        default=Enforcement.ENFORCE.value,
    )

    class Meta:
        abstract = True
        ordering: ClassVar = ["namespace", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["namespace", "name"], name="%(class)s_name_once_per_namespace"
            ),
            models.CheckConstraint(
                condition=Q(enforcement__in=[mode.value for mode in Enforcement]),
                name="%(class)s_enforcement_known",
            ),
            models.CheckConstraint(condition=Q(revision__gte=1), name="%(class)s_revision_counts"),
            models.CheckConstraint(condition=~Q(name=""), name="%(class)s_has_a_name"),
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._drafts: dict[str, list[models.Model]] = {}

    @property
    def owner(self) -> Cluster:
        """The cluster this policy belongs to."""
        return self.namespace.cluster

    @property
    def namespace_name(self) -> str:
        """The namespace this policy belongs to."""
        return self.namespace.name

    replaces: Self | None = None
    """The stored version that a save will replace; the engine checks what may change."""

    def rows_of(self, row_set: str) -> list[Any]:
        """The drafted rows, else the stored ones, in order."""
        if row_set in self._drafts:
            return self._drafts[row_set]
        return list(getattr(self, row_set).all()) if self.pk else []

    def draft_rows(self, row_set: str, rows: Sequence[models.Model]) -> None:
        """Set the rows with which the next save replaces the stored ones."""
        self._drafts[row_set] = list(rows)

    @property
    def drafts(self) -> Mapping[str, list[models.Model]]:
        """The unsaved rows, by related name."""
        return self._drafts

    def forget_drafts(self) -> None:
        """Read rows from the database again."""
        self._drafts = {}

    def metadata(self) -> dict[str, Any]:
        """``metadata`` of the manifest; the enforcement is an annotation there."""
        policy_metadata: dict[str, Any] = {"name": self.name, "namespace": self.namespace_name}
        if self.labels:
            policy_metadata["labels"] = self.labels
        mode = self.enforcement
        known = encode_enforcement(Enforcement(mode)) if mode in tuple(Enforcement) else {}
        if annotations := {**(self.annotations or {}), **known}:
            policy_metadata["annotations"] = annotations
        return policy_metadata

    def read_metadata(
        self, manifest: Mapping[str, Any], problems: Sequence[FieldError] = ()
    ) -> None:
        """Set name, labels, annotations and enforcement; raises ``ValidationError``."""
        named_namespace = (manifest.get("metadata") or {}).get("namespace") or self.namespace_name
        field_errors = list(problems)
        if named_namespace != self.namespace_name:
            detail = "does not match the namespace of the object"
            field_errors.append(
                FieldError(ErrorType.INVALID, "metadata.namespace", named_namespace, detail)
            )
        super().read_metadata(manifest, field_errors)
        mode = self.annotations.pop(ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE.value)
        self.enforcement = mode

    def clean_fields(self, exclude: Any = None) -> None:
        """Clean own fields and those of drafted rows; each error is placed at its row."""
        super().clean_fields(exclude=exclude)
        row_findings = [
            finding
            for row_set, rows in self._drafts.items()
            for index, row in enumerate(rows)
            for finding in self._row_findings(row, row_set, index)
        ]
        if row_findings:
            raise as_validation_error(row_findings)

    def path_of(self, _row: Any, row_set: str, index: int, column: str, /) -> str:
        """The path of a cell in the manifest."""
        return f"{row_set}[{index}].{column}"

    def _row_findings(self, row: models.Model, row_set: str, index: int) -> list[PlacedError]:
        parent_fields = [f.name for f in row._meta.fields if f.remote_field]  # noqa: SLF001 - Django's own API
        try:
            row.clean_fields(exclude=parent_fields)
        except ValidationError as error:
            return [
                PlacedError(
                    column_error.messages[0],
                    code=str(column_error.code),
                    path=self.path_of(row, row_set, index, column),
                    place=(row_set, index, column),
                )
                for column, column_errors in error.error_dict.items()
                for column_error in column_errors
            ]
        return []
