"""Parents of sync's REST views: SyncView checks its own writes, ClusterPartView has a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.http import Http404
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

from policies import roles
from policies.api.access import WritesByRole
from policies.api.bodies import check_body
from policies.api.recorded_view import PolicyView
from policies.models import Cluster

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.serializers import Serializer
    from rest_framework.views import APIView


class WritesAreChecked(WritesByRole):
    """Signed-in users read what is visible to them; each write checks its own permission."""

    def has_object_permission(self, request: Request, view: APIView, obj: Any) -> bool:
        """Whatever is visible may be found: the action knows what it writes, and where."""
        del request, view, obj
        return True


class SyncView(PolicyView):
    """Parent of the views: bodies with a serializer of their own, permissions by name."""

    permission_classes = [WritesAreChecked]

    def body(self, request: Request, serializer_class: type[Serializer[Any]]) -> dict[str, Any]:
        """The checked body of an action that is not the object itself."""
        serializer: Any = serializer_class(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def require_permission(self, permission: str, *, cluster: str, namespace: str = "") -> None:
        """Raise ``PermissionDenied`` unless the user has the permission there."""
        if not roles.may(self.request.user, permission, cluster=cluster, namespace=namespace):
            raise PermissionDenied

    def answer(self, shown: dict[str, Any], code: int = 200, **headers: str) -> Response:
        """Answer with JSON that is not one object of the view."""
        return Response(shown, code, headers=headers or None)


class ClusterPartView(SyncView):
    """What belongs to the one cluster that the address names."""

    queryset = Cluster.objects.all()
    names: ClassVar[dict[str, Any]] = {"cluster": "name", "whole": True}
    filter_backends = []
    pagination_class = None  # type: ignore[assignment]  # it has no lists

    def find_cluster(self, permission: str = "") -> Cluster:
        """The cluster; 404 for those who do not see it as a whole, 403 without the permission."""
        clusters = self.get_queryset().select_related("connection")
        cluster: Cluster | None = clusters.filter(name=self.kwargs["cluster"]).first()
        if cluster is None:
            raise Http404
        if permission:
            self.require_permission(permission, cluster=cluster.name)
        return cluster
