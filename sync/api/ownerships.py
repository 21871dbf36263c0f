"""View of ownerships: what the portal may write in clusters, taken and released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.response import Response

from policies import services
from policies.api.access import OF_CLUSTERS
from sync.api import filters
from sync.api.cluster_part import SyncView
from sync.api.serializers import SyncOwnershipSerializer
from sync.models import SyncOwnership
from sync.passes import resolution

if TYPE_CHECKING:
    from rest_framework.request import Request

    from policies.models import Cluster


class SyncOwnershipView(SyncView):
    """Ownerships of the namespaces and clusters that the caller sees."""

    queryset = SyncOwnership.objects.select_related("cluster").order_by("id")
    serializer_class = SyncOwnershipSerializer
    names: ClassVar = {**OF_CLUSTERS, "namespace": "namespace"}
    filterset_class = filters.SyncOwnershipFilter
    ordering_fields = ("namespace", "kind", "name", "created")

    def create(self, request: Request) -> Response:
        """Let the portal write an object, a namespace, or (without names) the whole cluster."""
        sent = self.sent(request)
        cluster = self.cluster_of({"cluster": sent["cluster"]["name"]})
        place = {name: sent.get(name, "") for name in ("namespace", "kind", "name")}
        # Of one object the approvers of its namespace decide, of more those of the cluster.
        namespace = place["namespace"] if place["kind"] else ""
        self.require(SyncOwnership, "add", cluster=cluster.name, namespace=namespace)
        with self.write(), services.policy_write(cluster):
            _require_free(cluster, place)
            ownership = resolution.take_ownership(cluster, self.author(), **place)
            return self.show(ownership, status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None, 200: SyncOwnershipSerializer})
    def destroy(self, _request: Request, **_names: Any) -> Response:
        """Release it: the objects stay in the cluster, and the portal only reads them."""
        ownership = self.get_object()
        self.require(SyncOwnership, "delete", cluster=ownership.cluster.name)
        if self.is_dry_run:
            return self.show(ownership)
        place = {name: getattr(ownership, name) for name in ("namespace", "kind", "name")}
        with self.write():
            resolution.release_ownership(ownership.cluster, self.author(), **place)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _require_free(cluster: Cluster, place: dict[str, str]) -> None:
    """Refuse a place of which nothing is known, and one that is owned already."""
    if place["namespace"]:
        resolution.require_known_namespace(cluster, place["namespace"])
    if SyncOwnership.objects.filter(cluster=cluster, **place).exists():
        raise ValidationError("the portal already owns this", code="unique")
