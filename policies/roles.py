"""Permissions of each role: RoleBackend, ``may``, ``sees``, ``visible`` by the user's bindings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.contrib.auth.backends import BaseBackend
from django.db.models import Q, QuerySet

from policies.models.roles import PREFIX, RoleBinding

if TYPE_CHECKING:
    from collections.abc import Sequence

_Rows = TypeVar("_Rows", bound=QuerySet[Any])
_Role = RoleBinding.Role
_POLICIES: Final = ("limitrange", "metadatapolicy", "resourcequota")


def _write_permissions(*models: str, app: str = "policies") -> frozenset[str]:
    actions = ("add", "change", "delete")
    return frozenset(f"{app}.{action}_{model}" for action in actions for model in models)


PERMISSIONS: Final[dict[str, frozenset[str]]] = {
    _Role.VIEWER: frozenset(),
    _Role.AUDITOR: frozenset({"admission.add_audithold", "admission.change_audithold"}),
    _Role.EDITOR: _write_permissions(*_POLICIES, "priorityclass", "limitedresource"),
    _Role.APPROVER: _write_permissions("syncownership", "syncrun", app="sync")
    | {"sync.change_syncedobject", "sync.change_clusterconnection"},
}
"""The permissions of a role in its scope; an admin has all."""


@dataclass(frozen=True, slots=True)
class RoleScope:
    """A place: a namespace, a cluster as a whole, or the whole fleet."""

    cluster: str = ""
    namespace: str = ""


class RoleBackend(BaseBackend):
    """Django's backend of role bindings: ``user.has_perm(permission, RoleScope(…))``."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Whether a binding grants a permission in a place; without one: everywhere."""
        if not user_obj.is_active or user_obj.is_anonymous:
            return False
        scope = obj if isinstance(obj, RoleScope) else RoleScope()
        return any(
            _role_grants(each, perm)
            for each in bindings_of(user_obj)
            if _binding_covers(each, scope)
        )


def _role_grants(binding: RoleBinding, permission: str) -> bool:
    return binding.role == _Role.ADMIN or permission in PERMISSIONS[binding.role]


def _binding_covers(binding: RoleBinding, place: RoleScope) -> bool:
    if not place.cluster:
        return not (binding.cluster or binding.namespace)
    return binding.covers(place.cluster, place.namespace)


def bindings_of(user: Any) -> Sequence[RoleBinding]:
    """The bindings of the user and of the user's groups."""
    # Kept on the user object, which lives for one request: pages check dozens of permissions.
    bindings: list[RoleBinding] | None = getattr(user, "_role_bindings", None)
    if bindings is None:
        mine = Q(user=user) | Q(group__in=user.groups.values("pk"))
        bindings = list(RoleBinding.objects.filter(mine)) if user.is_authenticated else []
        user._role_bindings = bindings  # noqa: SLF001  as Django keeps permissions on its users
    return bindings


def writing(kind: str, action: str = "change") -> str:
    """The name of the permission to add, change or delete objects of a kind."""
    model = "limitedresource" if kind == "ResourceQuotaConfiguration" else kind.lower()
    return f"policies.{action}_{model}"


def may(user: Any, permission: str, *, cluster: str = "", namespace: str = "") -> bool:
    """Whether the user has a permission everywhere, or by a role binding in this place."""
    place = RoleScope(cluster, namespace)
    return bool(user.has_perm(permission) or (cluster and user.has_perm(permission, place)))


def may_somewhere(user: Any, permission: str) -> bool:
    """Whether the user has a permission in any place."""
    return bool(
        user.has_perm(permission)
        or any(_role_grants(each, permission) for each in bindings_of(user))
    )


def sees(user: Any, cluster: str, namespace: str | None = None) -> bool:
    """Whether the user may see a namespace; ``""``: the whole cluster; None: any part of it."""
    if user.is_superuser:
        return bool(user.is_active)
    bindings_of_user = bindings_of(user)
    if namespace is None:
        return any(each.cluster in ("", cluster) for each in bindings_of_user)
    return any(each.covers(cluster, namespace) for each in bindings_of_user)


def sees_all(user: Any) -> bool:
    """Whether the user may see everything."""
    return bool(user.is_superuser) or any(
        not (each.cluster or each.namespace) for each in bindings_of(user)
    )


def visible(
    rows: _Rows, user: Any, *, cluster: str, namespace: str | None = None, whole: bool = False
) -> _Rows:
    """Restrict rows to what the user may see.

    ``cluster`` and ``namespace`` are the lookups of the two names. Without ``namespace`` the rows
    are of clusters: those of which the user may see any part, or, with ``whole``, everything.
    """
    if sees_all(user):
        return rows
    scope_filters = [
        _scope_filter(each, cluster, namespace)
        for each in bindings_of(user)
        if not (whole and each.namespace)
    ]
    any_scope = Q(pk__in=[])  # nothing: a user without bindings sees no rows
    for scope_filter in scope_filters:
        any_scope |= scope_filter
    return rows.filter(any_scope)


def _scope_filter(binding: RoleBinding, cluster: str, namespace: str | None) -> Q:
    wanted = Q(**{cluster: binding.cluster}) if binding.cluster else Q()
    if namespace is None or not binding.namespace:
        return wanted or ~Q(pk__in=[])  # everything; an empty Q would vanish from the union
    if binding.namespace.endswith(PREFIX):
        return wanted & Q(**{f"{namespace}__startswith": binding.namespace.removesuffix(PREFIX)})
    return wanted & Q(**{namespace: binding.namespace})
