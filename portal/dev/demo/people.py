"""People of the demo, of each role: ``begin_people``, and those whom its sign-in offers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from policies import services
from policies.models import ApiToken, RoleBinding
from portal.dev.demo.plot import ADA, CI, GRACE, LIN, at

if TYPE_CHECKING:
    from collections.abc import Sequence

Bound = tuple[str, str, str]
"""A role, a cluster and a namespace."""


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """An account, its roles, and the days since it signed in; none: not yet."""

    username: str
    name: str
    bound: tuple[Bound, ...] = ()
    groups: tuple[str, ...] = ()
    seen: timedelta | None = None
    is_offered: bool = False


PEOPLE: Final = (
    DemoPerson(ADA, "Ada Okafor", (("admin", "", ""),), (), timedelta(minutes=18), is_offered=True),
    DemoPerson(
        GRACE,
        "Grace Mbeki",
        (("editor", "", "payments*"), ("approver", "", "payments")),
        ("payments-dev",),
        timedelta(hours=2),
        is_offered=True,
    ),
    DemoPerson(
        "tomas.silva",
        "Tomás Silva",
        (("editor", "", "search"), ("editor", "demo", "team-search")),
        (),
        timedelta(minutes=25),
        is_offered=True,
    ),
    DemoPerson(
        "noor.haddad",
        "Noor Haddad",
        (("auditor", "", ""),),
        (),
        timedelta(hours=3),
        is_offered=True,
    ),
    DemoPerson(
        LIN,
        "Lin Wei",
        (("admin", "demo-connected", ""), ("editor", "demo", "")),
        ("sre-oncall",),
        timedelta(hours=19),
    ),
    DemoPerson(
        "jonas.keller",
        "Jonas Keller",
        (("approver", "demo-connected", ""), ("approver", "demo-priority", "")),
        ("sre-oncall",),
        timedelta(hours=26),
    ),
    DemoPerson(
        "priya.nair", "Priya Nair", (("editor", "", "checkout"),), (), timedelta(days=1, hours=1)
    ),
    DemoPerson("mina.rao", "Mina Rao", (), ("payments-dev",), timedelta(days=6)),
    DemoPerson("sam.ortiz", "Sam Ortiz", (("viewer", "", "checkout"),)),
)
GROUPS: Final[dict[str, Bound]] = {
    "payments-dev": ("viewer", "", "payments*"),
    "sre-oncall": ("viewer", "", ""),
}
PIPELINE: Final[tuple[Bound, ...]] = (("editor", "demo", "payments"), ("editor", "demo", "web"))
TOKENS: Final = (
    (GRACE, "laptop cli", ApiToken.Access.WRITE, 90),
    (GRACE, "nightly export", ApiToken.Access.READ, 6),
    (CI, "apply policies", ApiToken.Access.WRITE, 90),
    (CI, "drift report", ApiToken.Access.READ, 30),
)
"""Owner, name, access and days; nobody knows the secrets."""
_SINCE: Final = timedelta(days=28)


@transaction.atomic
def begin_people() -> None:
    """Create the people in a portal where nobody has a role yet; no one has a password."""
    if RoleBinding.objects.exists():
        return
    now = timezone.now()
    with at(now - _SINCE):
        users = {each.username: _create_person(each) for each in PEOPLE}
        ada = users[ADA]
        pipeline = services.create_service_account(
            name=CI, description="Pipelines of the shop", author=ada
        )
        users[CI] = pipeline.user
        groups = {name: Group.objects.create(name=name) for name in GROUPS}
        for each in PEOPLE:
            users[each.username].groups.set([groups[name] for name in each.groups])
            for bound in each.bound:
                _bind(bound, ada, user=users[each.username])
        for name, bound in GROUPS.items():
            _bind(bound, ada, group=groups[name])
        for bound in PIPELINE:
            _bind(bound, ada, user=pipeline.user)
    for owner, name, access, days in TOKENS:
        request = services.TokenRequest(name=name, access=access, days=days)
        services.issue_token(owner=users[owner], author=users[owner], request=request)
    for each in PEOPLE:
        seen = now - each.seen if each.seen else None
        User.objects.filter(username=each.username).update(last_login=seen)


def _create_person(person: DemoPerson) -> User:
    first, _, last = person.name.partition(" ")
    return User.objects.create_user(  # without a password: unusable
        person.username, email=f"{person.username}@example.com", first_name=first, last_name=last
    )


def _bind(bound: Bound, author: User, **subject: Any) -> None:
    role, cluster, namespace = bound
    binding = RoleBinding(role=role, cluster=cluster, namespace=namespace, **subject)
    services.bind_role(binding=binding, author=author)


def offered_people() -> Sequence[User]:
    """The people whom the demo's sign-in offers.

    Accounts with a password belong to somebody, whatever they are called.
    """
    names = [each.username for each in PEOPLE if each.is_offered]
    found = User.objects.filter(username__in=names, is_active=True)
    stored = {each.username: each for each in found.prefetch_related("role_bindings")}
    offered = [stored[name] for name in names if name in stored]
    return [each for each in offered if not each.has_usable_password()]
