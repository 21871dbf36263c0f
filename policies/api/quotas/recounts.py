"""``POST /api/v1/recounts/``: used amounts compared with the charges, and repaired if asked."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from policies import roles, services
from policies.api.access import ByRole
from policies.api.bodies import answer_to, check_body
from policies.api.quotas.journal import LedgerEntrySerializer
from policies.models import Namespace, ResourceQuota
from policies.rest import DRY_RUN, KnownParameters, ManifestParser
from policies.services import unknown_namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from policies.models import Cluster


class RecountRequestSerializer(serializers.Serializer[Any]):
    """What to recount, and whether to repair it."""

    cluster = serializers.CharField(max_length=63)
    namespace = serializers.CharField(
        required=False, allow_blank=True, max_length=63, help_text="empty: all of the cluster"
    )
    repair = serializers.BooleanField(
        required=False, default=False, help_text="set differing amounts to the sum of the charges"
    )


class RecountDifferenceSerializer(serializers.Serializer[Any]):
    """A resource whose used amount is not the sum of its charges; empty where there is none."""

    namespace = serializers.CharField()
    quota = serializers.CharField()
    resource = serializers.CharField()
    used = serializers.CharField(allow_blank=True)
    charged = serializers.CharField(allow_blank=True)
    is_explained = serializers.BooleanField(help_text="whether used lacks just these entries")
    entries = LedgerEntrySerializer(
        many=True, help_text="the newest entries of the journal that moved it, newest first"
    )


class RecountSerializer(serializers.Serializer[Any]):
    """What differed."""

    cluster = serializers.CharField()
    differences = RecountDifferenceSerializer(many=True)
    repaired = serializers.BooleanField(help_text="whether they were corrected")


class RecountView(KnownParameters, ByRole, APIView):
    """Recount, as ``manage.py quota_recount`` does; for those who may change quotas there."""

    permission_classes = [IsAuthenticated]
    parser_classes = [ManifestParser]

    def handle_exception(self, exc: Exception) -> Response:
        """Answer unknown clusters and namespaces by their field."""
        return answer_to(exc) or super().handle_exception(exc)

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """A dry run compares, and repairs nothing."""
        return (DRY_RUN,)

    @extend_schema(request=RecountRequestSerializer, responses=RecountSerializer)
    def post(self, request: Request) -> Response:
        """Return the differences; each namespace is locked while it is counted."""
        serializer = RecountRequestSerializer(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent = serializer.validated_data
        cluster, namespace = self.cluster_of(sent), sent.get("namespace", "")
        if namespace:
            self._require_seen(cluster, namespace)
        self.require(ResourceQuota, "change", cluster=cluster.name, namespace=namespace)
        repair = sent["repair"] and not self.is_dry_run
        found = services.recount_quotas(
            cluster=cluster,
            namespace=namespace,
            repair=repair,
            user=request.user.get_username(),
        )
        differences = [asdict(each) for each in found]
        answer = {"cluster": cluster.name, "differences": differences, "repaired": repair}
        return Response(RecountSerializer(answer).data)

    def _require_seen(self, cluster: Cluster, name: str) -> None:
        """Raise ``ValidationError`` for a namespace that is not there, or hidden."""
        namespaces, user = Namespace.objects.filter(cluster=cluster), self.request.user
        seen = roles.visible(namespaces, user, cluster="cluster__name", namespace="name")
        known = list(seen.values_list("name", flat=True))
        if name not in known:
            raise unknown_namespace(cluster=cluster, name=name, known=known, path="namespace")
