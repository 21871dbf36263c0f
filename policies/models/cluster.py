"""Abstract Recorded and Labelled (uid, revision, metadata, clean); tables Cluster, Namespace."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from engine.errors import DecodeError, ErrorType, FieldError
from engine.kubernetes_version import DEFAULT_VERSION, KNOWN_VERSIONS
from engine.names import dns1123_label_errors
from engine.policy import Authority
from policies.object_rules import metadata_errors, text_errors
from policies.validators import (
    DNS_LABEL,
    PlacedError,
    as_validation_error,
    decode_error_as_field_error,
    namespace_names_problem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.validators import Place


class Recorded(models.Model):
    """An object whose every write leaves a PolicyRevision."""

    kind: ClassVar[str]

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    revision = models.PositiveBigIntegerField(default=1, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    name: models.CharField[str, str]
    objects: ClassVar[models.Manager[Any]]

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def owner(self) -> Cluster:
        """The cluster this object belongs to."""
        raise NotImplementedError

    @property
    def namespace_name(self) -> str:
        """The namespace this object lives in; empty for objects of a whole cluster."""
        return ""

    def to_manifest(self) -> dict[str, Any]:
        """The object as Kubernetes writes it."""
        raise NotImplementedError

    def read_manifest(self, manifest: Mapping[str, Any]) -> Self:
        """Set everything from the manifest, rows as a draft; raises ``ValidationError``."""
        raise NotImplementedError

    def find_errors(self) -> list[PlacedError]:
        """Find all violations of the engine's rules, each with its place in the model."""
        manifest = self.to_manifest()
        rule_errors = text_errors(manifest) + metadata_errors(manifest["metadata"])
        try:
            rule_errors += self.rule_errors(manifest)
        except DecodeError as error:
            rule_errors.append(decode_error_as_field_error(error))
        # The rules of a kind may find again what the rules of all metadata found.
        return [self.place_error(error) for error in dict.fromkeys(rule_errors)]

    def rule_errors(self, manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Validate the manifest by the rules of its kind; may raise ``DecodeError``."""
        raise NotImplementedError

    def place_error(self, error: FieldError) -> PlacedError:
        """Place an engine's error at its field and row."""
        return PlacedError(
            error.message, code=error.type.cause, path=error.field, place=self.locate(error)
        )

    def decode_error(self, error: DecodeError) -> ValidationError:
        """Turn the error of an unreadable object into one at its field."""
        return as_validation_error([self.place_error(decode_error_as_field_error(error))])

    def locate(self, error: FieldError) -> Place:
        """Find the model's field of an error, and its row."""
        return ("", None, METADATA_COLUMNS.get(error.field.partition("[")[0], ""))

    def clean(self) -> None:
        """Validate by the engine's rules."""
        super().clean()
        if placed_errors := self.find_errors():
            raise as_validation_error(placed_errors)


METADATA_COLUMNS = {
    "metadata.name": "name",
    "metadata.labels": "labels",
    "metadata.annotations": "annotations",
}


class Labelled(Recorded):
    """A recorded object with labels and annotations."""

    labels: models.JSONField[Any, Any]
    annotations: models.JSONField[Any, Any]

    class Meta:
        abstract = True

    def metadata(self) -> dict[str, Any]:
        """``metadata`` of the manifest, without what is empty."""
        given_metadata = {"name": self.name, "labels": self.labels, "annotations": self.annotations}
        return {name: value for name, value in given_metadata.items() if value}

    def read_metadata(
        self, manifest: Mapping[str, Any], problems: Sequence[FieldError] = ()
    ) -> None:
        """Set name, labels and annotations; raises ``ValidationError``, ``problems`` included."""
        manifest_metadata = manifest.get("metadata") or {}
        if field_errors := [*metadata_errors(manifest_metadata), *problems]:
            raise as_validation_error([self.place_error(error) for error in field_errors])
        self.name = manifest_metadata.get("name") or ""
        self.labels = dict(manifest_metadata.get("labels") or {})
        self.annotations = dict(manifest_metadata.get("annotations") or {})


PORTAL_NAMESPACE = "gatehouse"


class Cluster(Recorded):
    """A Kubernetes cluster that sends admission reviews."""

    kind = "Cluster"

    class FailurePolicy(models.TextChoices):
        """What the API server does while the portal cannot answer, as Kubernetes names it."""

        FAIL = "Fail"
        IGNORE = "Ignore"

    name = models.CharField(
        max_length=63, unique=True, validators=[RegexValidator(DNS_LABEL, "must be a DNS label")]
    )
    description = models.TextField(blank=True)
    external_id = models.CharField(max_length=253, blank=True)
    authority = models.CharField(
        max_length=6,
        choices=[(each.value, each.value.title()) for each in Authority],
        default=Authority.PORTAL.value,
        help_text=(
            "who enforces ranges and quotas; native: the API server's own plugins refuse, and the "
            "portal only warns"
        ),
    )
    covers_kube_system = models.BooleanField(
        default=False, help_text="review requests in kube-system as well, failing open"
    )
    failure_policy = models.CharField(
        max_length=6,
        choices=FailurePolicy,
        default=FailurePolicy.FAIL,
        help_text="of the validating webhook; Ignore admits requests while the portal is down",
    )
    portal_namespace = models.CharField(
        max_length=63,
        default=PORTAL_NAMESPACE,
        validators=[RegexValidator(DNS_LABEL, "must be a DNS label")],
        help_text="of the portal's service account in the cluster; it is never reviewed",
    )
    excluded_namespaces = models.JSONField(
        default=list,
        blank=True,
        help_text="namespaces that the webhooks leave out: the portal enforces nothing there",
    )
    kubernetes_version = models.CharField(
        max_length=10,
        blank=True,
        choices=[(str(each), str(each)) for each in KNOWN_VERSIONS],
        help_text=(
            f"whose rules apply; empty: {DEFAULT_VERSION}. "
            "A connection test stores the version that the cluster reports"
        ),
    )
    # Counts writes of all policies; ``revision`` counts those of the cluster itself.
    policy_revision = models.PositiveBigIntegerField(default=0, editable=False)
    unconfirmed_limit = models.PositiveIntegerField(
        default=0,
        help_text="maximum of unconfirmed charges in each namespace; 0: no limit",
    )

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(name=""), name="cluster_has_a_name"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="cluster_revision_counts"),
            models.CheckConstraint(
                condition=Q(authority__in=[each.value for each in Authority]),
                name="cluster_authority_known",
            ),
            models.CheckConstraint(
                condition=Q(failure_policy__in=["Fail", "Ignore"]),
                name="cluster_failure_policy_known",
            ),
        ]

    @property
    def owner(self) -> Cluster:
        """The cluster itself."""
        return self

    def clean(self) -> None:
        """Validate the excluded namespaces, too: Django's own validators leave out a null."""
        super().clean()
        if problem := namespace_names_problem(self.excluded_namespaces):
            raise ValidationError({"excluded_namespaces": problem}, code="invalid")

    def to_manifest(self) -> dict[str, Any]:
        """The cluster in the shape of a Kubernetes object."""
        spec = {
            "description": self.description,
            "externalID": self.external_id,
            "unconfirmedLimit": self.unconfirmed_limit,
            "authority": self.authority,
            "coversKubeSystem": self.covers_kube_system,
            "failurePolicy": self.failure_policy,
            "portalNamespace": self.portal_namespace,
            "excludedNamespaces": self.excluded_namespaces,
            "kubernetesVersion": self.kubernetes_version,
        }
        # Defaults stay out of the manifest, and so out of its revisions.
        defaults = {
            "authority": Authority.PORTAL,
            "failurePolicy": self.FailurePolicy.FAIL,
            "portalNamespace": PORTAL_NAMESPACE,
        }
        return {
            "apiVersion": "policy.gatehouse.dev/v1alpha1",
            "kind": self.kind,
            "metadata": {"name": self.name},
            "spec": {
                name: value for name, value in spec.items() if value and value != defaults.get(name)
            },
        }

    def read_manifest(self, cluster_manifest: Mapping[str, Any]) -> Self:
        """Set everything from the manifest."""
        cluster_spec = cluster_manifest.get("spec") or {}
        self.name = cluster_manifest["metadata"]["name"]
        self.description = cluster_spec.get("description", "")
        self.external_id = cluster_spec.get("externalID", "")
        self.unconfirmed_limit = cluster_spec.get("unconfirmedLimit", 0)
        self.authority = cluster_spec.get("authority") or Authority.PORTAL
        self.portal_namespace = cluster_spec.get("portalNamespace") or PORTAL_NAMESPACE
        self.covers_kube_system = bool(cluster_spec.get("coversKubeSystem", False))
        self.failure_policy = cluster_spec.get("failurePolicy") or self.FailurePolicy.FAIL
        self.excluded_namespaces = list(cluster_spec.get("excludedNamespaces") or ())
        self.kubernetes_version = cluster_spec.get("kubernetesVersion") or ""
        return self

    def rule_errors(self, _manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """A cluster has no rules beyond the shape of its fields."""
        return []


class Namespace(Labelled):
    """A namespace of one cluster."""

    kind = "Namespace"

    class Phase(models.TextChoices):
        """The phase of a namespace, as Kubernetes names it."""

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
        """The namespace as Kubernetes writes it."""
        namespace_manifest: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": self.kind,
            "metadata": self.metadata(),
        }
        if self.phase != self.Phase.ACTIVE:
            namespace_manifest["status"] = {"phase": self.phase}
        return namespace_manifest

    def read_manifest(self, namespace_manifest: Mapping[str, Any]) -> Self:
        """Set name, labels, annotations and phase from the manifest."""
        self.read_metadata(namespace_manifest)
        self.phase = (namespace_manifest.get("status") or {}).get("phase", self.Phase.ACTIVE)
        return self

    def rule_errors(self, _manifest: Mapping[str, Any], /) -> Sequence[FieldError]:
        """Check that its name is a DNS label."""
        return [
            FieldError(ErrorType.INVALID, "metadata.name", self.name, text)
            for text in dns1123_label_errors(self.name)
        ]
