"""REST permissions WritesByRole and ByRole, by the place of an object; the RoleChangeView."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.core.exceptions import ValidationError
from rest_framework import mixins, serializers, viewsets
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission

from policies import roles
from policies.filters import RoleChangeFilter
from policies.lists.members import PicksMembers
from policies.lists.selection import ApiPagination, FilterBackend, StableOrdering
from policies.models import Cluster, Namespace, RoleChange
from policies.openapi import Answered
from policies.rest import KnownParameters
from policies.services import unknown_namespace

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from policies.models import PolicyRevision


_ACTION_OF_METHOD: Final = {"POST": "add", "PUT": "change", "PATCH": "change", "DELETE": "delete"}
OF_NAMESPACES: Final = {"cluster": "namespace__cluster__name", "namespace": "namespace__name"}
OF_CLUSTERS: Final = {"cluster": "cluster__name"}


class WritesByRole(BasePermission):
    """Signed-in users read what is visible to them; writing an object needs a role in its place."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Allow signed-in users; creating needs the permission in some place at least."""
        if not (request.user and request.user.is_authenticated):
            return False
        if getattr(view, "action", "") != "create":
            return True
        model = view.queryset.model  # type: ignore[attr-defined]  # ours have one
        return roles.may_somewhere(request.user, permission_for(model, "add"))

    def has_object_permission(self, request: Request, view: APIView, obj: Any) -> bool:
        """Whether this user may use this method on this object."""
        if request.method in SAFE_METHODS:
            return True
        if getattr(view, "action", "") in ("revoke", "restore"):
            return True  # the action checks it, since it knows what it writes
        cluster, namespace = place_of(obj)
        written_model = getattr(view, "written_model", type(obj))
        permission = permission_for(written_model, _ACTION_OF_METHOD[str(request.method)])
        return roles.may(request.user, permission, cluster=cluster, namespace=namespace)


class ByRole:
    """Part of a view: shows what its user may see, and checks permissions before it writes."""

    request: Any
    names: ClassVar[dict[str, Any]]
    """The lookups of ``roles.visible``."""

    def get_queryset(self) -> QuerySet[Any]:
        """Leave out what the user may not see."""
        return roles.visible(super().get_queryset(), self.request.user, **self.names)  # type: ignore[misc]  # the view's own

    def require(self, model: Any, action: str, *, cluster: str, namespace: str = "") -> None:
        """Raise ``PermissionDenied`` unless the user may do this there."""
        permission = permission_for(model, action)
        if not roles.may(self.request.user, permission, cluster=cluster, namespace=namespace):
            raise PermissionDenied

    def require_restoring(self, revision: PolicyRevision) -> None:
        """Raise ``PermissionDenied`` unless the user may write what a revision left."""
        permission, user = roles.writing(revision.kind), self.request.user
        if not roles.may(user, permission, cluster=revision.cluster, namespace=revision.namespace):
            raise PermissionDenied

    def cluster_of(self, sent_body: dict[str, Any]) -> Cluster:
        """Find the named cluster; raises ``ValidationError``, also if the user may not see it."""
        name = sent_body.get("cluster", "")
        # One error for both: it must not reveal that a hidden cluster exists.
        named_cluster: Cluster | None = Cluster.objects.filter(name=name).first()
        if named_cluster is None or not roles.sees(self.request.user, name):
            message = f"there is no cluster {name}" if name else "name the cluster"
            raise ValidationError({"cluster": ValidationError(message, code="unknown_cluster")})
        return named_cluster

    def namespace_in(self, cluster: Cluster, name: str) -> str:
        """A namespace that the user sees; raises ``ValidationError`` at ``namespace``."""
        seen = roles.visible(
            Namespace.objects.filter(cluster=cluster),
            self.request.user,
            cluster="cluster__name",
            namespace="name",
        )
        known = list(seen.values_list("name", flat=True))
        if name not in known:
            # The same for a hidden one: the error must not reveal that it exists.
            raise unknown_namespace(cluster=cluster, name=name, known=known, path="namespace")
        return name


def permission_for(model: Any, action: str) -> str:
    """Django's name of a permission."""
    options = model._meta  # noqa: SLF001  Django's public name
    return f"{options.app_label}.{action}_{options.model_name}"


def place_of(instance: Any) -> tuple[str, str]:
    """The names of an object's cluster and namespace."""
    owner = instance.owner if hasattr(instance, "owner") else instance.cluster
    return getattr(owner, "name", owner), getattr(instance, "namespace_name", "")


class RoleChangeSerializer(Answered, serializers.ModelSerializer[RoleChange]):
    """One role granted or revoked."""

    class Meta:
        model = RoleChange
        fields = ["id", "created", "action", "subject", "role", "cluster", "namespace", "actor"]


class RoleChangeView(
    PicksMembers, KnownParameters, mixins.ListModelMixin, viewsets.GenericViewSet[RoleChange]
):
    """The roles granted and revoked, newest first; for users who see the whole fleet."""

    queryset = RoleChange.objects.all()
    serializer_class = RoleChangeSerializer
    filter_backends = [FilterBackend, StableOrdering]
    filterset_class = RoleChangeFilter
    pagination_class = ApiPagination
    ordering_fields = ("subject", "created")

    def get_queryset(self) -> QuerySet[RoleChange]:
        """Everything, or nothing."""
        role_changes = super().get_queryset()
        return role_changes if roles.sees_all(self.request.user) else role_changes.none()
