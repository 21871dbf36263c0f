"""``POST /api/v1/simulations/restarts/``: running pods that other policies would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from engine.errors import DecodeError
from policies import snapshot
from policies.api.access import ByRole
from policies.api.bodies import BodyError, answer_to, check_body
from policies.manifests.documents import Document
from policies.openapi import Answered
from policies.rest import KnownParameters, ManifestParser
from policies.simulation import with_unsaved

if TYPE_CHECKING:
    from rest_framework.request import Request

    from admission.explain.restarts import RestartRow, Restarts


class RestartsRequestSerializer(serializers.Serializer[Any]):
    """Policies that are not saved, and the namespace whose pods they would judge."""

    cluster = serializers.CharField(max_length=63)
    namespace = serializers.CharField(max_length=63)
    policies = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="manifests that stand in for stored policies of the same kind and name; they "
        "count as enforced, whatever their mode",
    )


class RefusalSerializer(Answered, serializers.Serializer[Any]):
    """One reason for which a pod would be refused."""

    reason = serializers.CharField()
    field = serializers.CharField(allow_blank=True)
    message = serializers.CharField()


class RefusedPodsSerializer(Answered, serializers.Serializer[Any]):
    """Pods of one owner that would be refused for the same reasons."""

    kind = serializers.CharField(allow_blank=True)
    owner = serializers.CharField(allow_blank=True)
    pods = serializers.ListField(child=serializers.CharField())
    refused_today = serializers.BooleanField(help_text="under the stored policies as well")
    refusals = RefusalSerializer(many=True)


class RestartsSerializer(Answered, serializers.Serializer[Any]):
    """The running pods of a namespace, and those that would be refused if recreated."""

    running = serializers.IntegerField(help_text="pods that were evaluated")
    refused = serializers.IntegerField()
    newly_refused = serializers.IntegerField(help_text="by the policies of the body alone")
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="pods whose manifest is not on record as a whole"
    )
    is_cut = serializers.BooleanField(help_text="there are more pods than were evaluated")
    seen = serializers.DateTimeField(
        allow_null=True, help_text="when the cluster itself last listed its pods"
    )
    rows = RefusedPodsSerializer(many=True)


class RestartsApiView(KnownParameters, ByRole, APIView):
    """Evaluate each running pod as if recreated; nothing is stored or charged."""

    permission_classes = [IsAuthenticated]
    parser_classes = [ManifestParser]
    stores_nothing = True
    """A token to read may send it."""

    def handle_exception(self, exc: Exception) -> Response:
        """Answer unknown clusters and namespaces by their field."""
        return answer_to(exc) or super().handle_exception(exc)

    @extend_schema(request=RestartsRequestSerializer, responses=RestartsSerializer)
    def post(self, request: Request) -> Response:
        """Return the pods that could not restart."""
        serializer = RestartsRequestSerializer(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent = serializer.validated_data
        cluster = self.cluster_of(sent)
        namespace = self.namespace_in(cluster, sent["namespace"])
        before = snapshot.load(cluster.name, namespace)
        try:
            after = with_unsaved(before, sent.get("policies", ()), as_enforced=True)
            restarts = restarts_of(running_in(cluster, namespace), before=before, after=after)
        except DecodeError as error:
            raise BodyError([Document("body", None).problem(error.field, error.detail)]) from error
        return Response(_rendered(restarts))


def _rendered(restarts: Restarts) -> dict[str, Any]:
    running = restarts.running
    return {
        "running": len(running.pods),
        "refused": restarts.refused,
        "newly_refused": restarts.newly,
        "unknown": list(running.unknown),
        "is_cut": running.is_cut,
        "seen": running.seen,
        "rows": [_row(row) for row in restarts.rows],
    }


def _row(row: RestartRow) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "owner": row.owner,
        "pods": [found.pod.name for found in row.pods],
        "refused_today": row.is_so_today,
        "refusals": RefusalSerializer(row.refusals, many=True).data,
    }
