"""Subjects of roles, as far as a reader knows of them: people, service accounts and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from django.contrib.auth.models import Group, User
from django.db.models import Count, F, Max, Prefetch, Q
from django.db.models.functions import Coalesce
from django.http import Http404
from django.utils import timezone

from policies import roles
from policies.models import RoleBinding
from policies.plurals import counted
from portal.pages.access.words import initials, roles_in_short
from portal.pages.lists import any_contains

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from django.db.models import OrderBy, QuerySet

GROUP: Final = "group:"
"""Begins the key of a group, as in the form of a role."""
SORTS: Final = ("name", "active")


@dataclass(frozen=True, slots=True)
class Subject:
    """A row of the list: whoever may have roles."""

    key: str
    name: str
    detail: str
    look: str
    """``person``, ``group`` or ``service``."""
    roles: str
    active: dt.datetime | None

    @property
    def initials(self) -> str:
        """Two letters for a person; groups and service accounts have an icon."""
        return initials(self.name) if self.look == "person" else ""


@dataclass(frozen=True, slots=True)
class SubjectSearch:
    """What the list is searched for."""

    words: str = ""
    role: str = ""
    order: tuple[str, bool] = ("name", False)
    """The column, and whether downwards."""


def visible_bindings(reader: Any) -> QuerySet[RoleBinding]:
    """The bindings whose scope the reader sees."""
    bindings = RoleBinding.objects.order_by("cluster", "namespace")
    return roles.visible(bindings, reader, cluster="cluster", namespace="namespace")


def known_users(reader: Any) -> QuerySet[User]:
    """Accounts that the reader knows of: all, or those with a role in the reader's own scopes."""
    users = User.objects.filter(is_active=True)
    # An admin of one namespace must not list all accounts.
    if not roles.sees_all(reader):
        users = users.filter(pk__in=visible_bindings(reader).order_by().values("user_id"))
    return users


def accounts_in_care(keeper: Any) -> QuerySet[User]:
    """Accounts that a keeper of accounts looks after; a superuser's is for superusers."""
    users = User.objects.filter(is_active=True)
    return users if keeper.is_superuser else users.filter(is_superuser=False)


def known_groups(reader: Any) -> QuerySet[Group]:
    """Groups that the reader knows of, as with accounts."""
    groups = Group.objects.all()
    if not roles.sees_all(reader):
        groups = groups.filter(pk__in=visible_bindings(reader).order_by().values("group_id"))
    return groups


def find_subject(key: str, reader: Any) -> User | Group:
    """The account or group of a key; 404 for one that the reader does not know of."""
    found: User | Group | None
    if key.startswith(GROUP):
        found = known_groups(reader).filter(name=key.removeprefix(GROUP)).first()
    else:
        found = known_users(reader).filter(username=key).first()
    if found is None:
        raise Http404
    return found


class Subjects(Sequence[Subject]):
    """The rows that fit, people before groups; a sequence for a paginator, read by the page."""

    def __init__(self, reader: Any, wanted: SubjectSearch) -> None:
        bindings = visible_bindings(reader)
        self._users = _fitting_users(known_users(reader), bindings, wanted)
        self._groups = _fitting_groups(known_groups(reader), bindings, wanted)
        self._user_number = self._users.count()
        self._group_number = self._groups.count()

    def __len__(self) -> int:
        return self._user_number + self._group_number

    @overload
    def __getitem__(self, index: int) -> Subject: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Subject]: ...

    def __getitem__(self, index: int | slice) -> Subject | Sequence[Subject]:
        if isinstance(index, int):
            return self[index : index + 1][0]
        start, stop, _ = index.indices(len(self))
        users = self._users[start:stop]
        groups = self._groups[max(0, start - self._user_number) : max(0, stop - self._user_number)]
        return [*_user_rows(users), *_group_rows(groups)]


def _fitting_users(
    users: QuerySet[User], bindings: QuerySet[RoleBinding], wanted: SubjectSearch
) -> QuerySet[User]:
    if wanted.words:
        by_name = any_contains(wanted.words, "username", "first_name", "last_name", "email")
        bound = bindings.filter(any_contains(wanted.words, "role", "cluster", "namespace"))
        users = users.filter(by_name | Q(pk__in=bound.order_by().values("user_id")))
    if wanted.role:
        bound = bindings.filter(role=wanted.role)
        users = users.filter(pk__in=bound.order_by().values("user_id"))
    is_valid = Q(auth_token_set__expiry=None) | Q(auth_token_set__expiry__gt=timezone.now())
    counted_users = users.annotate(
        active=Coalesce("last_login", Max("auth_token_set__last_used")),
        token_number=Count("auth_token_set", filter=is_valid),
    )
    return (
        counted_users.order_by(*_ordering(wanted, "username"))
        .select_related("service_account")
        .prefetch_related(Prefetch("role_bindings", bindings), "groups")
    )


def _fitting_groups(
    groups: QuerySet[Group], bindings: QuerySet[RoleBinding], wanted: SubjectSearch
) -> QuerySet[Group]:
    if wanted.words:
        bound = bindings.filter(any_contains(wanted.words, "role", "cluster", "namespace"))
        by_name = any_contains(wanted.words, "name")
        groups = groups.filter(by_name | Q(pk__in=bound.order_by().values("group_id")))
    if wanted.role:
        bound = bindings.filter(role=wanted.role)
        groups = groups.filter(pk__in=bound.order_by().values("group_id"))
    counted_groups = groups.annotate(
        active=Max("user__last_login"), members=Count("user", filter=Q(user__is_active=True))
    )
    ordered_groups = counted_groups.order_by(*_ordering(wanted, "name"))
    return ordered_groups.prefetch_related(Prefetch("role_bindings", bindings))


def _ordering(wanted: SubjectSearch, name: str) -> tuple[OrderBy, OrderBy]:
    """By name, or by the last activity; whoever never was active comes last."""
    column, is_down = wanted.order
    by_column = F("active" if column == "active" else name)
    ordering = by_column.desc(nulls_last=True) if is_down else by_column.asc(nulls_last=True)
    return ordering, F(name).asc()


def _user_rows(users: QuerySet[Any]) -> Iterator[Subject]:
    for user in users:
        is_service = hasattr(user, "service_account")
        tokens = f"service, {counted(user.token_number, 'tokens')}"
        full_name = user.get_full_name()
        yield Subject(
            key=user.username,
            name=full_name or user.username,
            detail=tokens if is_service else user.username if full_name else "",
            look="service" if is_service else "person",
            roles=_roles_of(user),
            active=user.active,
        )


def _roles_of(user: Any) -> str:
    """A superuser needs no role; whoever has none of their own may have some by a group."""
    if user.is_superuser:
        return "superuser, whole fleet"
    own = roles_in_short(user.role_bindings.all())
    groups = ", ".join(group.name for group in user.groups.all())
    return own or (f"by group {groups}" if groups else "")


def _group_rows(groups: QuerySet[Any]) -> Iterator[Subject]:
    for group in groups:
        yield Subject(
            key=f"{GROUP}{group.name}",
            name=group.name,
            detail=f"group of {group.members}",
            look="group",
            roles=roles_in_short(group.role_bindings.all()),
            active=group.active,
        )
