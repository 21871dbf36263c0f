"""Permissions of each role: RoleBackend, ``may``, ``sees``, ``visible`` by the user's bindings.

A token limits them (``limit``): to reading, to a cluster, to namespaces. Every permission of ours
is one to write: what may be read follows from the scopes of roles alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.contrib.auth.backends import BaseBackend
from django.db.models import Q, QuerySet

from policies.models.roles import PREFIX, RoleBinding, scope_overlap, scope_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policies.models.roles import Scope
    from policies.models.tokens import ApiToken

_Rows = TypeVar("_Rows", bound=QuerySet[Any])
_Role = RoleBinding.Role
_POLICIES: Final = ("limitrange", "metadatapolicy", "resourcequota", "kepttest")
_MODELS: Final = {"ResourceQuotaConfiguration": "limitedresource", "PolicyTest": "kepttest"}
"""The models of kinds with another name."""


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
GIVE_ROLES: Final = "policies.add_rolebinding"
TAKE_ROLES: Final = "policies.delete_rolebinding"
KEEP_ACCOUNTS: Final = "policies.change_serviceaccount"
"""The permission to create, end and give tokens to service accounts; they are of the fleet."""


@dataclass(frozen=True, slots=True)
class RoleScope:
    """A place: a namespace, a cluster as a whole, or the whole fleet."""

    cluster: str = ""
    namespace: str = ""


def place_of_binding(cluster: str, namespace: str) -> RoleScope:
    """Where one must be admin to give or take a role of this scope.

    A namespace's admin grants roles in that very namespace; a prefix needs a wider scope.
    """
    exact_namespace = namespace if not namespace.endswith(PREFIX) else ""
    return RoleScope(cluster, exact_namespace if cluster else "")


class RoleBackend(BaseBackend):
    """Django's backend of role bindings: ``user.has_perm(permission, RoleScope(…))``."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Whether a binding grants a permission in a place; without one: everywhere."""
        if not user_obj.is_active or user_obj.is_anonymous:
            return False
        place = obj if isinstance(obj, RoleScope) else RoleScope()
        return _token_allows(user_obj, place) and _is_granted(user_obj, perm, place)


def _is_granted(user: Any, permission: str, place: RoleScope) -> bool:
    """Whether a binding grants a permission in a place."""
    bindings = (each for each in bindings_of(user) if _binding_covers(each, place))
    return any(_role_grants(each, permission) for each in bindings)


def _role_grants(binding: RoleBinding, permission: str) -> bool:
    return binding.role == _Role.ADMIN or permission in PERMISSIONS[binding.role]


def _binding_covers(binding: RoleBinding, place: RoleScope) -> bool:
    if not place.cluster:
        return not (binding.cluster or binding.namespace)
    return binding.covers(place.cluster, place.namespace)


def limit(user: Any, token: ApiToken) -> None:
    """Let the user, for this request, do no more than the token allows."""
    user.presented_token = token
    user._role_bindings = None  # noqa: SLF001  what was read without the token


def token_of(user: Any) -> ApiToken | None:
    """The token with which the user came, None for a session."""
    return getattr(user, "presented_token", None)


def is_scoped(user: Any) -> bool:
    """Whether the user came with a token for a part of the fleet."""
    token = token_of(user)
    return token is not None and not token.covers("", "")


def _token_allows(user: Any, place: RoleScope, *, to_read: bool = False) -> bool:
    """Whether the user's token, if there is one, allows to write in a place."""
    token = token_of(user)
    if token is None:
        return True
    return (to_read or not token.is_read_only) and token.covers(place.cluster, place.namespace)


def bindings_of(user: Any) -> Sequence[RoleBinding]:
    """The bindings of the user and of the user's groups, as far as the user's token reaches."""
    # Kept on the user object, which lives for one request: pages check dozens of permissions.
    bindings: list[RoleBinding] | None = getattr(user, "_role_bindings", None)
    if bindings is None:
        bindings = _stored_bindings(user)
        if is_scoped(user):
            token: Any = token_of(user)
            bindings = list(_overlaps(bindings, (token.cluster, token.namespace)))
        user._role_bindings = bindings  # noqa: SLF001  as Django keeps permissions on its users
    return bindings


def _stored_bindings(user: Any) -> list[RoleBinding]:
    if not user.is_authenticated:
        return []
    mine = Q(user=user) | Q(group__in=user.groups.values("pk"))
    stored = list(RoleBinding.objects.filter(mine))
    # A superuser needs no role, but has to have one that a token can narrow.
    is_admin = user.is_superuser and is_scoped(user)
    return [*stored, RoleBinding(user=user, role=_Role.ADMIN)] if is_admin else stored


def _overlaps(bindings: Iterable[RoleBinding], scope: Scope) -> Iterator[RoleBinding]:
    """Bindings narrowed to a scope; they are not stored."""
    for each in bindings:
        overlap = scope_overlap((each.cluster, each.namespace), scope)
        if overlap is not None:
            yield RoleBinding(
                user_id=each.user_id,
                group_id=each.group_id,
                role=each.role,
                cluster=overlap[0],
                namespace=overlap[1],
            )


def writing(kind: str, action: str = "change") -> str:
    """The name of the permission to add, change or delete objects of a kind."""
    return f"policies.{action}_{_MODELS.get(kind, kind.lower())}"


def may(
    user: Any, permission: str, *, cluster: str = "", namespace: str = "", to_read: bool = False
) -> bool:
    """Whether the user has a permission everywhere, or by a role binding in this place.

    ``to_read``: the user merely wants to see what the permission is about, so that a token to read
    is enough.
    """
    place = RoleScope(cluster, namespace)
    if not _token_allows(user, place, to_read=to_read):
        return False
    if to_read and _is_granted(user, permission, place):
        return True
    return bool(user.has_perm(permission) or (cluster and user.has_perm(permission, place)))


def may_somewhere(user: Any, permission: str, *, to_read: bool = False) -> bool:
    """Whether the user has a permission in any place; ``to_read`` as in ``may``."""
    token = token_of(user)
    if token is not None and token.is_read_only and not to_read:
        return False
    return bool(
        user.has_perm(permission)
        or any(_role_grants(each, permission) for each in bindings_of(user))
    )


def reaches(user: Any, scope: Scope) -> bool:
    """Whether a scope lies in that of the user's token as a whole; always without a token."""
    token = token_of(user)
    return token is None or scope_within(scope, (token.cluster, token.namespace))


def _is_boundless(user: Any) -> bool:
    return bool(user.is_superuser) and not is_scoped(user)


def roles_at(user: Any, cluster: str, namespace: str) -> frozenset[str]:
    """The roles that the user has in a namespace; a superuser is admin everywhere."""
    if not user.is_active:
        return frozenset()
    if _is_boundless(user):
        return frozenset({_Role.ADMIN.value})
    return frozenset(each.role for each in bindings_of(user) if each.covers(cluster, namespace))


def sees(user: Any, cluster: str, namespace: str | None = None) -> bool:
    """Whether the user may see a namespace; ``""``: the whole cluster; None: any part of it."""
    if _is_boundless(user):
        return bool(user.is_active)
    bindings_of_user = bindings_of(user)
    if namespace is None:
        return any(each.cluster in ("", cluster) for each in bindings_of_user)
    return any(each.covers(cluster, namespace) for each in bindings_of_user)


def sees_all(user: Any) -> bool:
    """Whether the user may see everything."""
    return _is_boundless(user) or any(
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
