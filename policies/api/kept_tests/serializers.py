"""REST serializers of kept tests, and of a run: results, differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from engine.kept_tests import ALLOW, DENY, REASONS, answer_of
from policies.api.components import Manifest, ManifestField
from policies.api.serializers import (
    CLUSTER_HELP,
    MetadataSerializer,
    RecordedSerializer,
    recorded_fields,
)
from policies.openapi import Answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.kept_tests import JudgedTest
    from policies.models import KeptTest


class KeptSpecField(serializers.JSONField):
    """A spec as it was sent: the library's own check recurses, and objects may nest deeply."""

    def to_internal_value(self, data: Any) -> Any:
        """Leave the check to the engine, which bounds the levels."""
        return data


class PolicyTestSerializer(Manifest, RecordedSerializer):
    """An object of a namespace, and the answer that the namespace's policies should give."""

    kind_of_manifest = "PolicyTest"
    required_in_bodies = ("cluster",)

    cluster = serializers.CharField(max_length=63, required=False, help_text=CLUSTER_HELP)
    metadata = MetadataSerializer()
    spec = KeptSpecField()
    author = serializers.CharField(read_only=True, help_text="who kept it")

    def to_representation(self, instance: KeptTest) -> dict[str, Any]:
        """Show the manifest, and the fields beside it."""
        return {
            **recorded_fields(instance),
            "cluster": instance.owner.name,
            **instance.to_manifest(),
            "author": instance.author,
        }


class KeptTestRunRequestSerializer(Answered, serializers.Serializer[Any]):
    """A namespace whose tests are judged, and policies that are not saved."""

    cluster = serializers.CharField(max_length=63)
    namespace = serializers.CharField(max_length=63)
    manifests = serializers.ListField(
        child=ManifestField(),
        required=False,
        help_text="manifests that stand in for stored policies of the same kind and name",
    )


class AnswerDifferenceSerializer(serializers.Serializer[Any]):
    """One aspect of the answer that is not as expected."""

    aspect = serializers.ChoiceField(("verdict", "reasons", "patch", "object"))
    message = serializers.CharField()


class KeptTestResultSerializer(serializers.Serializer[Any]):
    """One test, and the answer that was found."""

    name = serializers.CharField()
    object = serializers.CharField(help_text="kind and name")
    expected = serializers.ChoiceField((ALLOW, DENY))
    found = serializers.ChoiceField(
        (ALLOW, DENY), allow_null=True, help_text="null: the object cannot be read"
    )
    reasons = serializers.ListField(child=serializers.ChoiceField(REASONS), help_text="found")
    passed = serializers.BooleanField()
    differences = AnswerDifferenceSerializer(many=True)


class KeptTestRunSerializer(Answered, serializers.Serializer[Any]):
    """The results, red ones first, then by name."""

    cluster = serializers.CharField()
    namespace = serializers.CharField()
    passed = serializers.IntegerField()
    red = serializers.IntegerField()
    results = KeptTestResultSerializer(many=True)


def render_run(cluster: str, namespace: str, results: Sequence[JudgedTest]) -> dict[str, Any]:
    """A run as the API shows it."""
    passed = sum(each.passes for each in results)
    return {
        "cluster": cluster,
        "namespace": namespace,
        "passed": passed,
        "red": len(results) - passed,
        "results": [_render_result(each) for each in results],
    }


def _render_result(judged: JudgedTest) -> dict[str, Any]:
    found = answer_of(judged.decision) if judged.decision else None
    return {
        "name": judged.test.name,
        "object": judged.test.object_title,
        "expected": judged.test.expected.verdict,
        "found": found.verdict if found else None,
        "reasons": list(found.reasons) if found else [],
        "passed": judged.passes,
        "differences": [
            {"aspect": each.aspect, "message": each.message} for each in judged.differences
        ],
    }
