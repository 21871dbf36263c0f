"""PriorityClass of a cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from engine.errors import ErrorType, FieldError
from engine.wire import RawNumber
from policies.models.cluster import Cluster, Recorded
from policies.validators import as_validation_error, metadata_errors, priority_class_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COLUMNS = {
    "value": "value",
    "globalDefault": "global_default",
    "preemptionPolicy": "preemption_policy",
    "description": "description",
}
_WHOLE = re.compile(r"-?[0-9]{1,20}")
TYPES: dict[str, type] = {
    "value": int,
    "globalDefault": bool,
    "preemptionPolicy": str,
    "description": str,
}


class PriorityClass(Recorded):
    """A PriorityClass of one cluster."""

    kind = "PriorityClass"

    class PreemptionPolicy(models.TextChoices):
        """Whether pods of the class push others out."""

        PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
        NEVER = "Never"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="priority_classes")
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    value = models.IntegerField(default=0)
    global_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(
        max_length=20,
        choices=PreemptionPolicy,
        blank=True,
        help_text="empty: not given, which Kubernetes reads as PreemptLowerPriority",
    )
    description = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["cluster", "name"]
        verbose_name_plural = "priority classes"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "name"], name="priorityclass_name_once"),
            models.CheckConstraint(
                condition=Q(preemption_policy__in=["", "PreemptLowerPriority", "Never"]),
                name="priorityclass_preemption_known",
            ),
            models.CheckConstraint(
                condition=Q(revision__gte=1), name="priorityclass_revision_counts"
            ),
            models.CheckConstraint(condition=~Q(name=""), name="priorityclass_has_a_name"),
        ]

    @property
    def owner(self) -> Cluster:
        """The cluster it belongs to."""
        return self.cluster

    def to_manifest(self) -> dict[str, Any]:
        """Give the class as Kubernetes writes it; what is empty is left out, ``value`` never."""
        given = {"name": self.name, "labels": self.labels, "annotations": self.annotations}
        metadata = {name: value for name, value in given.items() if value}
        manifest = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": self.kind,
            "metadata": metadata,
            "value": self.value,
        }
        for name in ("globalDefault", "preemptionPolicy", "description"):
            if value := getattr(self, COLUMNS[name]):
                manifest[name] = value
        return manifest

    def read_manifest(self, manifest: Mapping[str, Any]) -> Self:
        """Take over everything; raises ``ValidationError`` for wrong types."""
        metadata = manifest.get("metadata") or {}
        given = {name: _plain(manifest.get(name)) for name in COLUMNS}
        problems = metadata_errors(metadata) + _type_errors(given)
        if problems:
            raise as_validation_error([self.place_error(error) for error in problems])
        self.name = metadata.get("name") or ""
        self.labels = dict(metadata.get("labels") or {})
        self.annotations = dict(metadata.get("annotations") or {})
        for name, column in COLUMNS.items():
            setattr(self, column, TYPES[name]() if given[name] is None else given[name])
        return self

    def rule_errors(self, _manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """What Kubernetes refuses."""
        return priority_class_errors(
            name=self.name,
            value=self.value,
            preemption_policy=self.preemption_policy,
            global_default=self.global_default,
        )

    def locate(self, error: FieldError) -> tuple[str, int | None, str]:
        """Where the error belongs in the model."""
        column = COLUMNS.get(error.field)
        return ("", None, column) if column else super().locate(error)


def _plain(value: object) -> object:
    """Turn a number that kept its text into an int, where it is one."""
    if isinstance(value, RawNumber) and _WHOLE.fullmatch(value):
        return int(value)
    return value


def _type_errors(given: Mapping[str, object]) -> list[FieldError]:
    return [
        FieldError(ErrorType.INVALID, name, None, f"must be of type {TYPES[name].__name__}")
        for name, value in given.items()
        if value is not None and type(value) is not TYPES[name]
    ]
