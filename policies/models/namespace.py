"""Namespace: part of one cluster; each policy belongs to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from engine.errors import ErrorType, FieldError
from engine.names import dns1123_label_errors
from policies.models.cluster import Cluster
from policies.models.recorded import Recorded
from policies.validators import as_validation_error, metadata_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Namespace(Recorded):
    """A namespace of one cluster."""

    kind = "Namespace"

    class Phase(models.TextChoices):
        """Where it is in its life."""

        ACTIVE = "Active"
        TERMINATING = "Terminating"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="namespaces")
    name = models.CharField(max_length=63)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    phase = models.CharField(max_length=11, choices=Phase, default=Phase.ACTIVE)

    class Meta:
        ordering: ClassVar = ["cluster", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "name"], name="namespace_once_per_cluster"),
            models.CheckConstraint(
                condition=Q(phase__in=["Active", "Terminating"]), name="namespace_phase_known"
            ),
            models.CheckConstraint(condition=Q(revision__gte=1), name="namespace_revision_counts"),
            models.CheckConstraint(condition=~Q(name=""), name="namespace_has_a_name"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"

    @property
    def owner(self) -> Cluster:
        """The cluster it belongs to."""
        return self.cluster

    def to_manifest(self) -> dict[str, Any]:
        """Give the namespace as Kubernetes writes it."""
        given = {"name": self.name, "labels": self.labels, "annotations": self.annotations}
        metadata = {name: value for name, value in given.items() if value}
        manifest: dict[str, Any] = {"apiVersion": "v1", "kind": self.kind, "metadata": metadata}
        if self.phase != self.Phase.ACTIVE:
            manifest["status"] = {"phase": self.phase}
        return manifest

    def read_manifest(self, manifest: Mapping[str, Any]) -> Self:
        """Take over name, labels, annotations and phase."""
        metadata = manifest.get("metadata") or {}
        if problems := metadata_errors(metadata):
            raise as_validation_error([self.place_error(error) for error in problems])
        self.name = metadata.get("name") or ""
        self.labels = dict(metadata.get("labels") or {})
        self.annotations = dict(metadata.get("annotations") or {})
        self.phase = (manifest.get("status") or {}).get("phase", self.Phase.ACTIVE)
        return self

    def rule_errors(self, _manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Its name must be a DNS label."""
        return [
            FieldError(ErrorType.INVALID, "metadata.name", self.name, text)
            for text in dns1123_label_errors(self.name)
        ]
