"""Table PriorityClass: value, globalDefault, preemptionPolicy in COLUMNS; TYPES of its manifest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from engine.errors import ErrorType, FieldError
from engine.wire import RawNumber
from policies.models.cluster import Cluster, Labelled
from policies.object_rules import priority_class_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COLUMNS = {
    "value": "value",
    "globalDefault": "global_default",
    "preemptionPolicy": "preemption_policy",
    "description": "description",
}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,20}")
TYPES: dict[str, type] = {
    "value": int,
    "globalDefault": bool,
    "preemptionPolicy": str,
    "description": str,
}


class PriorityClass(Labelled):
    """A PriorityClass of one cluster."""

    kind = "PriorityClass"

    class PreemptionPolicy(models.TextChoices):
        """Whether pods of the class may preempt others."""

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
        help_text="empty: not set; Kubernetes then uses PreemptLowerPriority",
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
        """The class as Kubernetes writes it: ``value`` always, other fields where they are set."""
        class_manifest = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": self.kind,
            "metadata": self.metadata(),
            "value": self.value,
        }
        for name in ("globalDefault", "preemptionPolicy", "description"):
            if value := getattr(self, COLUMNS[name]):
                class_manifest[name] = value
        return class_manifest

    def read_manifest(self, class_manifest: Mapping[str, Any]) -> Self:
        """Set everything from the manifest; raises ``ValidationError`` for wrong types."""
        given = {name: class_manifest.get(name) for name in COLUMNS}
        # Parsed manifests keep the text of numbers, so that quantities stay exact.
        if isinstance(value := given["value"], RawNumber) and _WHOLE_NUMBER.fullmatch(value):
            given["value"] = int(value)
        wrong_types = [
            FieldError(ErrorType.INVALID, name, None, f"must be of type {TYPES[name].__name__}")
            for name, value in given.items()
            if value is not None and type(value) is not TYPES[name]
        ]
        self.read_metadata(class_manifest, wrong_types)
        for name, column in COLUMNS.items():
            setattr(self, column, TYPES[name]() if given[name] is None else given[name])
        return self

    def rule_errors(self, _manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Validate as Kubernetes does."""
        return priority_class_errors(
            name=self.name,
            value=self.value,
            preemption_policy=self.preemption_policy,
            global_default=self.global_default,
        )

    def locate(self, class_error: FieldError) -> tuple[str, int | None, str]:
        """Find the model's field of an error."""
        class_column = COLUMNS.get(class_error.field)
        return ("", None, class_column) if class_column else super().locate(class_error)
