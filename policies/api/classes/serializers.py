"""REST serializers of namespace classes, members, given policies, previews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from policies import services
from policies.api.components import Manifest
from policies.api.managers import ManagedFieldSerializer, render_managed_field
from policies.api.past.classes import PastClass
from policies.models import ClassMember, ClassPolicy, NamespaceClass
from policies.openapi import Answered

if TYPE_CHECKING:
    from policies.services import ClassPreview

_REASON = "why, for the record"
_NOT_KEPT = "null with ?at=: it is on no record"
_CONFIRM = "the number of deletions, as a confirmation where they are many"


class ClassMetadataSerializer(Answered, serializers.Serializer[Any]):
    """``metadata`` of a class."""

    name = serializers.CharField(max_length=63)


class GivenSerializer(Answered, serializers.Serializer[Any]):
    """What a write did in the namespaces."""

    made = serializers.IntegerField()
    changed = serializers.IntegerField()
    removed = serializers.IntegerField()
    held = serializers.IntegerField(help_text="deletions that wait for a person")


class NamespaceClassSerializer(Manifest, serializers.Serializer[Any]):
    """A namespace class: policies that matching namespaces of all clusters get."""

    kind_of_manifest = "NamespaceClass"
    has_replacements = True
    only_in_replacements = ("version",)

    version = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="when writing: the version this change was made on; another one is refused",
    )
    reason = serializers.CharField(
        write_only=True, required=False, allow_blank=True, help_text=_REASON
    )
    confirmDeletions = serializers.IntegerField(  # noqa: N815 - in the style of Kubernetes
        write_only=True, required=False, min_value=0, help_text=_CONFIRM
    )
    metadata = ClassMetadataSerializer()
    spec = serializers.JSONField()
    namespaces = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="that it matches; null where ?at= shows a class that nobody can read any more",
    )
    exceptions = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text=f"policies that somebody changed in one namespace; {_NOT_KEPT}",
    )
    heldDeletions = serializers.IntegerField(  # noqa: N815 - in the style of Kubernetes
        read_only=True,
        allow_null=True,
        help_text=f"of namespaces that left; they wait for a person; {_NOT_KEPT}",
    )
    created = serializers.DateTimeField(read_only=True)
    updated = serializers.DateTimeField(read_only=True)

    def to_representation(self, instance: NamespaceClass | PastClass) -> dict[str, Any]:
        """Show the manifest, and what became of it."""
        if isinstance(instance, PastClass):
            return _past(instance)
        made = ClassPolicy.objects.filter(namespace_class=instance)
        return {
            "version": instance.version,
            **instance.to_manifest(),
            "namespaces": instance.members.filter(has_left=False).count(),
            "exceptions": made.filter(exception_count__gt=0).count(),
            "heldDeletions": services.held_deletions(instance),
            "created": instance.created,
            "updated": instance.updated,
        }


def _past(past: PastClass) -> dict[str, Any]:
    return {
        "version": past.version,
        **past.manifest,
        "namespaces": past.namespaces,
        "exceptions": None,
        "heldDeletions": None,
        "created": past.created,
        "updated": past.updated,
    }


class ClassMemberSerializer(Answered, serializers.ModelSerializer[ClassMember]):
    """A namespace that a class matches."""

    namespaceClass = serializers.CharField(  # noqa: N815 - in the style of Kubernetes
        source="namespace_class.name", read_only=True
    )
    cluster = serializers.CharField(source="namespace.cluster.name", read_only=True)
    namespace = serializers.CharField(source="namespace.name", read_only=True)
    hasLeft = serializers.BooleanField(  # noqa: N815 - in the style of Kubernetes
        source="has_left",
        read_only=True,
        help_text="the class matches it no longer, and its policies wait for a person",
    )
    problems = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = ClassMember
        fields = ["id", "namespaceClass", "cluster", "namespace", "version", "hasLeft", "problems"]


class ClassPolicySerializer(Answered, serializers.Serializer[Any]):
    """A policy that a class gave to a namespace, and what somebody changed there."""

    id = serializers.IntegerField(read_only=True)
    namespaceClass = serializers.CharField(read_only=True)  # noqa: N815 - in the style of Kubernetes
    cluster = serializers.CharField(read_only=True)
    namespace = serializers.CharField(read_only=True)
    kind = serializers.CharField(read_only=True)
    name = serializers.CharField(read_only=True)
    version = serializers.IntegerField(read_only=True, help_text="of the class, in force there")
    wasMade = serializers.BooleanField(  # noqa: N815 - in the style of Kubernetes
        read_only=True, help_text="false: the policy was there before the class"
    )
    exceptions = ManagedFieldSerializer(
        many=True, read_only=True, help_text="fields that stay as somebody set them"
    )

    def to_representation(self, instance: ClassPolicy) -> dict[str, Any]:
        """Show the row with its exceptions."""
        return {
            "id": instance.pk,
            "namespaceClass": instance.namespace_class.name,
            "cluster": instance.namespace.cluster.name,
            "namespace": instance.namespace.name,
            "kind": instance.kind,
            "name": instance.name,
            "version": instance.version,
            "wasMade": instance.was_made,
            "exceptions": [render_managed_field(each) for each in services.exceptions_of(instance)],
        }


class GiveBackSerializer(serializers.Serializer[Any]):
    """Which exceptions follow the class again."""

    fields = serializers.ListField(  # type: ignore[assignment]  # a member of the body
        child=serializers.CharField(allow_blank=True, max_length=500),
        required=False,
        help_text="paths as in exceptions; without them all",
    )
    reason = serializers.CharField(required=False, allow_blank=True, help_text=_REASON)


class ConfirmLeavingSerializer(serializers.Serializer[Any]):
    """A person's word that held deletions may go on."""

    confirmDeletions = serializers.IntegerField(  # noqa: N815 - in the style of Kubernetes
        min_value=1, help_text="heldDeletions of the class"
    )


class PolicyEffectSerializer(Answered, serializers.Serializer[Any]):
    """What a version would do with one policy."""

    cluster = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(("make", "change", "remove"))
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]  # of the answer


class MatchedSerializer(Answered, serializers.Serializer[Any]):
    """The namespaces of one cluster."""

    cluster = serializers.CharField()
    namespaces = serializers.ListField(child=serializers.CharField())


class ClassPreviewSerializer(Answered, serializers.Serializer[Any]):
    """What saving a class would do; nothing was stored."""

    version = serializers.IntegerField(help_text="that it would be")
    matched = MatchedSerializer(many=True)
    effects = PolicyEffectSerializer(many=True)
    problems = serializers.ListField(child=serializers.CharField())
    exceptions = serializers.IntegerField(help_text="fields that stay as somebody set them")
    deletions = serializers.IntegerField()
    needsConfirmation = serializers.BooleanField(  # noqa: N815 - in the style of Kubernetes
        help_text="send the number of deletions as confirmDeletions"
    )


def render_preview(preview: ClassPreview) -> dict[str, Any]:
    """A preview as the API shows it."""
    return {
        "version": preview.version,
        "matched": [
            {"cluster": cluster, "namespaces": list(names)}
            for cluster, names in preview.namespaces.items()
        ],
        "effects": [
            {
                "cluster": each.cluster,
                "kind": each.key[0],
                "namespace": each.key[1],
                "name": each.key[2],
                "action": each.action,
                "fields": list(each.fields),
            }
            for each in preview.effects
        ],
        "problems": list(preview.problems),
        "exceptions": preview.exceptions,
        "deletions": len(preview.having("remove")),
        "needsConfirmation": preview.needs_confirmation,
    }
