"""View of a cluster's authority: who enforces ranges and quotas, and what a switch would meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from engine.policy import Authority
from policies import preconditions, services
from policies.models import LimitRange, ResourceQuota
from policies.openapi import Answered, DescribedField
from sync.api.cluster_part import ClusterPartView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request
    from rest_framework.response import Response

    from policies.models import Cluster

_AUTHORITIES = [each.value for each in Authority]


class AuthoritySerializer(Answered, serializers.Serializer[Any]):
    """Who enforces the ranges and quotas of a cluster."""

    cluster = serializers.CharField(read_only=True)
    authority = serializers.ChoiceField(
        _AUTHORITIES, help_text="the portal, or the API server's own plugins (native)"
    )
    reason = serializers.CharField(
        write_only=True, max_length=1000, help_text="why; this is recorded"
    )
    ranges = serializers.IntegerField(read_only=True)
    quotas = serializers.IntegerField(read_only=True)
    not_native = DescribedField(
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        read_only=True,
        help_text="enforced ranges and quotas that the cluster does not have, by namespace: the "
        "portal still enforces these",
    )

    def to_representation(self, instance: Cluster) -> dict[str, Any]:
        """Show the authority, and what it is about."""
        return {
            "cluster": instance.name,
            "authority": instance.authority,
            "ranges": LimitRange.objects.filter(namespace__cluster=instance).count(),
            "quotas": ResourceQuota.objects.filter(namespace__cluster=instance).count(),
            "not_native": services.not_native(instance),
        }


class ClusterAuthorityView(ClusterPartView):
    """The authority of the cluster that the address names."""

    serializer_class = AuthoritySerializer

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of a switch."""
        parameters = super().parameters_of(action)
        return (*parameters, preconditions.IF_MATCH) if action == "update" else parameters

    def etag_of(self, instance: Cluster) -> str:
        """The cluster's revision, which a switch counts."""
        return preconditions.etag_of_revision(instance.revision)

    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """Who enforces, and which policies are concerned."""
        del request
        return self.show(self.find_cluster())

    @extend_schema(request=AuthoritySerializer, responses=AuthoritySerializer)
    def update(self, request: Request, **_names: Any) -> Response:
        """Switch the authority; decisions from then on say who enforced."""
        cluster = self.find_cluster("policies.change_cluster")
        sent = self.sent(request)
        with self.write(), services.policy_write(cluster):
            fresh = self.find_cluster()
            preconditions.require_match(request, self.etag_of(fresh), revision=fresh.revision)
            services.set_authority(
                cluster=fresh,
                authority=sent["authority"],
                user=self.author(),
                reason=sent["reason"],
            )
            return self.show(fresh)
