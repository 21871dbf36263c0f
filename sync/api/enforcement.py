"""View of a cluster's enforcement: who enforces what there, and what is missing for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers

from engine.policy import Authority
from policies.models import Cluster
from policies.openapi import Answered
from sync.api.cluster_part import ClusterPartView
from sync.enforcement.gaps import GapCode, GapRemedy
from sync.enforcement.survey import Because, Enforcer, survey
from sync.inventory import cluster_states
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request
    from rest_framework.response import Response

NAMESPACE = OpenApiParameter(
    "namespace", description="only this namespace, and what concerns the whole cluster"
)


class HoldingSerializer(Answered, serializers.Serializer[Any]):
    """Who enforces the policies of one kind in one namespace."""

    namespace = serializers.CharField()
    kind = serializers.ChoiceField(WRITTEN_KINDS)
    policies = serializers.IntegerField()
    enforcer = serializers.ChoiceField(
        [each.value for each in Enforcer],
        help_text="the API server's own plugin, the portal, or nobody",
    )
    because = serializers.ChoiceField(
        ["", *(each.value for each in Because)], help_text="why nobody enforces"
    )
    is_proven = serializers.BooleanField(
        help_text="whether a canary has shown it within minutes; else it follows from the settings"
    )


class GapSerializer(Answered, serializers.Serializer[Any]):
    """One thing that is missing until policies are enforced as meant."""

    code = serializers.ChoiceField([each.value for each in GapCode])
    namespace = serializers.CharField(help_text="empty: the whole cluster")
    message = serializers.CharField(source="words")
    command = serializers.CharField(help_text="what mends it, on the portal's machine")
    remedy = serializers.ChoiceField([each.value for each in GapRemedy])
    is_open = serializers.BooleanField(
        help_text="whether nobody enforces because of it what the portal should"
    )


class EnforcementSurveySerializer(Answered, serializers.Serializer[Any]):
    """Who enforces what in a cluster, what is missing, and what cannot be seen."""

    cluster = serializers.CharField()
    authority = serializers.ChoiceField([each.value for each in Authority])
    failure_policy = serializers.ChoiceField(
        Cluster.FailurePolicy.values,
        help_text="what the API server is to do while the portal cannot answer",
    )
    webhook = serializers.ChoiceField(cluster_states.WEBHOOK_STATES)
    is_complete = serializers.BooleanField(help_text="whether nothing is missing")
    holdings = HoldingSerializer(many=True)
    missing = GapSerializer(many=True, source="gaps")
    unseen = serializers.ListField(
        child=serializers.CharField(), help_text="what no API shows, and what is relied on instead"
    )


class ClusterEnforcementView(ClusterPartView):
    """Who enforces what in the cluster that the address names."""

    serializer_class = EnforcementSurveySerializer

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add the namespace."""
        return (*super().parameters_of(action), NAMESPACE)

    @extend_schema(responses=EnforcementSurveySerializer)
    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """Who enforces each kind in each namespace, and what is missing for it."""
        found = survey(self.find_cluster().name)
        namespace = request.query_params.get("namespace", "")
        shown = found.of_namespace(namespace) if namespace else found
        return self.answer(dict(EnforcementSurveySerializer(shown).data))
