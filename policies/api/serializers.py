"""REST serializers: fields and ``to_representation`` of objects, credentials, revisions, charges.

Serializers check the shape of bodies; ``services`` checks everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from engine.kubernetes_version import DEFAULT_VERSION, KNOWN_VERSIONS, UNKNOWN_TEXT
from engine.policy import (
    ENFORCEMENT_ANNOTATION,
    IN_API_SERVER_ANNOTATION,
    Enforcement,
    InAPIServer,
)
from policies import roles
from policies.api.components import AMOUNTS, LimitedResourcesField, Manifest
from policies.models import (
    Charge,
    Cluster,
    CompilablePolicy,
    LimitedResource,
    Namespace,
    PolicyObject,
    PolicyRevision,
    PriorityClass,
    ResourceQuota,
    WebhookCredential,
)
from policies.openapi import OBJECT, TEXT_MAP, Answered, DescribedField
from policies.validators import MOST_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from policies.lints import Lint

_ID_HELP = "null where ?dryRun=All shows a new object, or ?at= one that is deleted since"
CLUSTER_HELP = "fixed: a change may leave it out, and is refused with another one"


class WarningSerializer(Answered, serializers.Serializer[Any]):
    """A hint about one policy of the namespace."""

    code = serializers.CharField()
    kind = serializers.CharField(source="policy.kind")
    name = serializers.CharField(source="policy.name")
    field = serializers.CharField()
    message = serializers.CharField()


@extend_schema_field(TEXT_MAP)
class TextMapField(serializers.DictField):
    """Labels or annotations."""


class WideMetadataSerializer(Answered, serializers.Serializer[Any]):
    """``metadata`` of an object of a whole cluster."""

    optional_in_answers = ("labels", "annotations")

    name = serializers.CharField(max_length=253)
    labels = TextMapField(required=False)
    annotations = TextMapField(required=False)


class MetadataSerializer(WideMetadataSerializer):
    """``metadata`` of an object that lives in a namespace."""

    namespace = serializers.CharField(max_length=63, required=False)


class RecordedSerializer(Answered, serializers.Serializer[Any]):
    """The fields beside the object itself."""

    has_replacements = True
    only_in_replacements = ("revision",)

    id = serializers.IntegerField(read_only=True, allow_null=True, help_text=_ID_HELP)
    uid = serializers.UUIDField(read_only=True)
    revision = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="when writing: the revision this change was made on; another one is refused",
    )
    reason = serializers.CharField(
        write_only=True, required=False, allow_blank=True, help_text="why, for the record"
    )
    created = serializers.DateTimeField(read_only=True)
    updated = serializers.DateTimeField(read_only=True)


class PolicySerializer(Manifest, RecordedSerializer):
    """A policy as a manifest, with its cluster, enforcement and revision."""

    required_in_bodies = ("cluster",)
    annotations_of_fields: ClassVar[tuple[str, ...]] = (ENFORCEMENT_ANNOTATION,)
    """Annotations that answers show as fields."""

    cluster = serializers.CharField(max_length=63, required=False, help_text=CLUSTER_HELP)
    metadata = MetadataSerializer()
    spec = serializers.JSONField()
    enforcement = serializers.ChoiceField(
        choices=[mode.value for mode in Enforcement], required=False
    )
    warnings = DescribedField(WarningSerializer(many=True), read_only=True)

    def to_representation(self, instance: PolicyObject) -> dict[str, Any]:
        """Show the manifest, and the fields beside it."""
        manifest = instance.to_manifest()
        shown_annotations = manifest["metadata"].get("annotations") or {}
        for annotation in self.annotations_of_fields:
            shown_annotations.pop(annotation, None)
        return {
            **recorded_fields(instance),
            "cluster": instance.owner.name,
            **manifest,
            "enforcement": instance.enforcement,
            "warnings": show_lints(self.context.get("lints", ())),
        }


class CompilableSerializer(PolicySerializer):
    """A policy that the API server can enforce, too."""

    annotations_of_fields = (ENFORCEMENT_ANNOTATION, IN_API_SERVER_ANNOTATION)

    in_api_server = serializers.ChoiceField(
        choices=[mode.value for mode in InAPIServer],
        required=False,
        help_text="whether the API server enforces it, too: off, audit (it records) or enforce",
    )

    def to_representation(self, instance: CompilablePolicy) -> dict[str, Any]:  # type: ignore[override]  # its own kind
        """Show what the API server does, too."""
        return {**super().to_representation(instance), "in_api_server": instance.in_api_server}


class LimitRangeSerializer(CompilableSerializer):
    """Minimum, maximum and default amounts for the pods and claims of one namespace."""

    kind_of_manifest = "LimitRange"


class MetadataPolicySerializer(CompilableSerializer):
    """Rules over labels and annotations of the objects of one namespace."""

    kind_of_manifest = "MetadataPolicy"


class QuotaStatusSerializer(Answered, serializers.Serializer[Any]):
    """What a quota limits, and how much of it is used, as far as it is counted yet."""

    hard = DescribedField(AMOUNTS)
    used = DescribedField(TEXT_MAP)


class ResourceQuotaSerializer(PolicySerializer):
    """Limits of one namespace, for all its objects or those that the scopes select."""

    kind_of_manifest = "ResourceQuota"

    status = DescribedField(QuotaStatusSerializer(), read_only=True)

    def to_representation(self, instance: ResourceQuota) -> dict[str, Any]:  # type: ignore[override]  # its own kind
        """Show what is used, too."""
        return {**super().to_representation(instance), "status": instance.status()}


def show_lints(lints: tuple[Lint, ...]) -> Any:
    """Lints as the API shows them."""
    return WarningSerializer(lints, many=True).data


def recorded_fields(recorded: Any) -> dict[str, Any]:
    """The fields beside a recorded object, as answers have them."""
    return {
        "id": recorded.pk,
        "uid": str(recorded.uid),
        "revision": recorded.revision,
        "created": recorded.created,
        "updated": recorded.updated,
    }


_CLUSTER_FIELDS = (
    *("name", "description", "external_id", "unconfirmed_limit", "kubernetes_version"),
    *("failure_policy", "excluded_namespaces", "covers_kube_system", "policy_revision"),
)


class ClusterSerializer(RecordedSerializer):
    """A cluster; its name is the path segment of its webhook addresses."""

    name = serializers.CharField(max_length=63)
    description = serializers.CharField(required=False, allow_blank=True)
    external_id = serializers.CharField(required=False, allow_blank=True, max_length=253)
    unconfirmed_limit = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)
    kubernetes_version = serializers.ChoiceField(
        choices=[str(each) for each in KNOWN_VERSIONS],
        required=False,
        allow_blank=True,
        error_messages={"invalid_choice": UNKNOWN_TEXT},
        help_text=f"whose rules hold; empty: {DEFAULT_VERSION}",
    )
    failure_policy = serializers.ChoiceField(
        choices=Cluster.FailurePolicy.values,
        default=Cluster.FailurePolicy.FAIL.value,
        error_messages={"invalid_choice": "must be Fail or Ignore"},
        help_text="what the API server does without an answer: refuse (Fail), or let in (Ignore)",
    )
    excluded_namespaces = serializers.ListField(
        child=serializers.CharField(max_length=63),
        default=list,
        max_length=MOST_NAMESPACES,
        help_text="namespaces that the webhooks leave out: the portal enforces nothing there",
    )
    covers_kube_system = serializers.BooleanField(
        default=False, help_text="whether the webhooks review kube-system, too, failing open"
    )
    policy_revision = serializers.IntegerField(read_only=True)

    def to_representation(self, instance: Cluster) -> dict[str, Any]:
        """Show its fields."""
        return recorded_fields(instance) | {n: getattr(instance, n) for n in _CLUSTER_FIELDS}


class NamespaceSerializer(Manifest, RecordedSerializer):
    """A namespace of a cluster."""

    kind_of_manifest = "Namespace"
    required_in_bodies = ("cluster",)

    cluster = serializers.CharField(max_length=63, required=False, help_text=CLUSTER_HELP)
    metadata = WideMetadataSerializer()
    phase = serializers.ChoiceField(choices=Namespace.Phase.choices, required=False)

    def to_representation(self, instance: Namespace) -> dict[str, Any]:
        """Show the manifest without its status, of which ``phase`` is all."""
        manifest = instance.to_manifest()
        manifest.pop("status", None)
        return {
            **recorded_fields(instance),
            "cluster": instance.owner.name,
            **manifest,
            "phase": instance.phase,
        }


_COUNT = {"type": "integer", "minimum": 0}
_OF_NAMESPACE = ("limitranges", "metadatapolicies", "resourcequotas", "tests")
_OF_CLUSTER = ("namespaces", "priorityclasses", "limitedresources", "credentials", "charges")


def _counts(*names: str) -> dict[str, Any]:
    """The schema of numbers of objects by the plural of their kind."""
    members = dict.fromkeys(names, _COUNT)
    return {"type": "object", "properties": members, "required": sorted(members)}


class ClusterDeletionSerializer(ClusterSerializer):
    """A cluster, and the numbers of objects that its deletion would delete."""

    deletes = DescribedField(_counts(*_OF_NAMESPACE, *_OF_CLUSTER), read_only=True)


class NamespaceDeletionSerializer(NamespaceSerializer):
    """A namespace, and the numbers of objects that its deletion would delete."""

    deletes = DescribedField(_counts(*_OF_NAMESPACE), read_only=True)


class PriorityClassSerializer(Manifest, RecordedSerializer):
    """A priority class of a cluster."""

    kind_of_manifest = "PriorityClass"
    required_in_bodies = ("cluster",)
    optional_in_answers = ("globalDefault", "preemptionPolicy", "description")

    cluster = serializers.CharField(max_length=63, required=False, help_text=CLUSTER_HELP)
    metadata = WideMetadataSerializer()
    value = serializers.IntegerField()
    globalDefault = serializers.BooleanField(required=False)  # noqa: N815 - Kubernetes' own name
    preemptionPolicy = serializers.CharField(required=False)  # noqa: N815 - Kubernetes' own name
    description = serializers.CharField(required=False, allow_blank=True)

    def to_representation(self, instance: PriorityClass) -> dict[str, Any]:
        """Show the manifest."""
        return {
            **recorded_fields(instance),
            "cluster": instance.owner.name,
            **instance.to_manifest(),
        }


class LimitedResourcesSerializer(Answered, serializers.Serializer[Any]):
    """The limited resources of one cluster, in order."""

    cluster = serializers.CharField(read_only=True)
    limitedResources = LimitedResourcesField(  # noqa: N815 - Kubernetes' own name
        child=serializers.JSONField()
    )
    reason = serializers.CharField(write_only=True, required=False, allow_blank=True)

    def to_representation(self, instance: Cluster) -> dict[str, Any]:
        """Show the entries as the quota plugin's configuration has them."""
        entries = LimitedResource.objects.filter(cluster=instance).order_by("position")
        return {
            "cluster": instance.name,
            "limitedResources": [entry.to_manifest() for entry in entries],
        }


class SeenClusterField(serializers.SlugRelatedField[Cluster]):
    """A cluster by its name; a hidden one gets the same error as an unknown one."""

    def get_queryset(self) -> QuerySet[Cluster]:
        """The clusters of which the user may see any part."""
        return roles.visible(Cluster.objects.all(), self.context["request"].user, cluster="name")


class CredentialSerializer(Answered, serializers.ModelSerializer[WebhookCredential]):
    """A webhook credential; only the response that issues it shows its ``secret``."""

    id = serializers.IntegerField(read_only=True, allow_null=True, help_text=_ID_HELP)
    cluster = SeenClusterField(slug_field="name", queryset=Cluster.objects.all())
    reason = serializers.CharField(write_only=True, required=False, allow_blank=True)
    secret = serializers.SerializerMethodField()

    class Meta:
        model = WebhookCredential
        fields: ClassVar = [
            "id", "cluster", "label", "created", "expires", "revoked", "reason", "secret",
        ]  # fmt: skip
        read_only_fields: ClassVar = ["created", "revoked"]

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_secret(self, _credential: WebhookCredential) -> str | None:
        """The secret, if the credential was just issued."""
        issued_secret: str | None = self.context.get("secret")
        return issued_secret


class RevisionSerializer(Answered, serializers.ModelSerializer[PolicyRevision]):
    """One recorded write."""

    id = serializers.IntegerField(read_only=True, allow_null=True, help_text=_ID_HELP)
    before = DescribedField(OBJECT, read_only=True, allow_null=True)
    after = DescribedField(OBJECT, read_only=True, allow_null=True)

    class Meta:
        model = PolicyRevision
        fields = "__all__"


class RestoreSerializer(serializers.Serializer[Any]):
    """Why a revision is restored."""

    reason = serializers.CharField(
        required=False, allow_blank=True, max_length=1000, help_text="why, for the record"
    )


class ChargeSerializer(Answered, serializers.ModelSerializer[Charge]):
    """The charge of one object to one quota."""

    cluster = serializers.CharField(source="cluster.name", read_only=True)
    quota = serializers.CharField(source="quota.name", read_only=True, allow_null=True)
    amounts = DescribedField(TEXT_MAP, read_only=True)

    class Meta:
        model = Charge
        fields: ClassVar = [
            "id", "cluster", "namespace", "quota", "quota_uid", "resource", "object_uid",
            "object_name", "amounts", "state", "created", "updated",
        ]  # fmt: skip


_ANNOTATIONS_BY_FIELD = {
    "enforcement": ENFORCEMENT_ANNOTATION,
    "in_api_server": IN_API_SERVER_ANNOTATION,
}


def policy_manifest(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Build a manifest of the fields; those beside the manifest override its annotations."""
    manifest_metadata = dict(data["metadata"])
    manifest_annotations = dict(manifest_metadata.get("annotations") or {})
    for name, key in _ANNOTATIONS_BY_FIELD.items():
        if data.get(name) is not None:
            manifest_annotations[key] = data[name]
    if manifest_annotations:
        manifest_metadata["annotations"] = manifest_annotations
    return {"kind": kind, "metadata": manifest_metadata, "spec": data["spec"]}
