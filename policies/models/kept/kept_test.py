"""Table KeptTest: an object of a namespace with the answer that its policies should give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from django.db import models
from django.db.models import Q

from engine.errors import ErrorType, FieldError
from engine.kept_tests import KIND, decode_kept_test, encode_kept_test, validate_kept_test
from engine.kept_tests import KeptTest as EngineTest
from engine.metadata_policy import API_VERSION
from policies.models.cluster import Labelled
from policies.validators import as_validation_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.models.cluster import Cluster

MOST_TESTS: Final = 200
"""So many tests of one namespace are kept: an editor judges all of them at each try."""


class KeptTest(Labelled):
    """A test of one namespace; its manifest is a PolicyTest."""

    kind = KIND
    row_sets: ClassVar[tuple[str, ...]] = ()

    namespace = models.ForeignKey("policies.Namespace", models.PROTECT, related_name="kept_tests")
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    spec = models.JSONField(default=dict)
    author = models.CharField(max_length=254, blank=True, editable=False)

    class Meta:
        ordering: ClassVar = ["namespace", "name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["namespace", "name"], name="kepttest_name_once_per_namespace"
            ),
            models.CheckConstraint(condition=Q(revision__gte=1), name="kepttest_revision_counts"),
            models.CheckConstraint(condition=~Q(name=""), name="kepttest_has_a_name"),
        ]

    @property
    def owner(self) -> Cluster:
        """The cluster of its namespace."""
        return self.namespace.cluster

    @property
    def namespace_name(self) -> str:
        """The namespace whose policies it tests."""
        return self.namespace.name

    @property
    def value(self) -> EngineTest:
        """The test as the engine reads it."""
        return decode_kept_test(self.to_manifest())

    def to_manifest(self) -> dict[str, Any]:
        """The test as a manifest."""
        kept = {"labels": self.labels, "annotations": self.annotations}
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {
                "name": self.name,
                "namespace": self.namespace_name,
                **{name: texts for name, texts in kept.items() if texts},
            },
            "spec": self.spec,
        }

    def read_manifest(self, manifest: Mapping[str, Any]) -> Self:
        """Set everything from the manifest; raises ``DecodeError`` or ``ValidationError``."""
        metadata = manifest.get("metadata") or {}
        named = metadata.get("namespace") or self.namespace_name
        if named != self.namespace_name:
            detail = "does not match the namespace of the object"
            error = FieldError(ErrorType.INVALID, "metadata.namespace", named, detail)
            raise as_validation_error([self.place_error(error)])
        read = decode_kept_test(manifest)
        self.read_metadata(manifest)
        self.spec = encode_kept_test(read)["spec"]
        return self

    def rule_errors(self, manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Validate by the engine."""
        return validate_kept_test(decode_kept_test(manifest))
