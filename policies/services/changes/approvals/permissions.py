"""Who may approve, review afterwards and publish in an emergency; what an approval is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies import roles
from policies.change_sets.approvals.terms import APPROVING_ROLES
from policies.change_sets.states import StepKind
from policies.models import ChangeStep, RoleBinding
from policies.services.changes.permissions import may_write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.change_sets.approvals.facts import Place
    from policies.models import ChangeItem, ChangeSet

    Grants = frozenset[tuple[Place, str]]

RULING: Final = "policies.change_approvalrule"
"""The permission to write rules of approval; they are of the fleet."""
PUBLISHING_NOW: Final = "policies.publish_now_changeset"
_WRITING_STEPS: Final = (StepKind.EDIT, StepKind.PUBLISH_NOW)
_ADMIN: Final = RoleBinding.Role.ADMIN.value


def who_wrote(change: ChangeSet) -> set[str]:
    """The author, and everybody who has edited the content or published it without approvals."""
    steps = ChangeStep.objects.filter(change=change, step__in=_WRITING_STEPS).order_by()
    return {change.author, *steps.values_list("user", flat=True)}


def grants_of(user: Any, places: Iterable[Place]) -> Grants:
    """The roles that count for approvals, in each of these places; an admin has all."""
    found = set()
    for place in places:
        held = roles.roles_at(user, *place)
        of_place = APPROVING_ROLES if _ADMIN in held else held & set(APPROVING_ROLES)
        found |= {(place, role) for role in of_place}
    return frozenset(found)


def places_of(items: Iterable[ChangeItem]) -> set[Place]:
    """Where objects lie."""
    return {(item.cluster, item.namespace) for item in items}


def may_approve(user: Any, change: ChangeSet) -> bool:
    """Whether the user did not write the change, and has a role that counts in a place of it."""
    if user.get_username() in who_wrote(change):
        return False
    return _may_write_by_token(user) and bool(grants_of(user, places_of(change.items.all())))


def may_review(user: Any, change: ChangeSet) -> bool:
    """Whether the user did not write the change, and has a role that counts in all its places."""
    if user.get_username() in who_wrote(change) or not _may_write_by_token(user):
        return False
    places = places_of(change.items.all())
    return {place for place, _ in grants_of(user, places)} == places


def may_publish_now(user: Any, change: ChangeSet) -> bool:
    """Whether the user is admin of all places of the change: an emergency passes every rule."""
    items = list(change.items.all())
    is_admin = all(
        roles.may(user, PUBLISHING_NOW, cluster=cluster, namespace=namespace)
        for cluster, namespace in places_of(items)
    )
    return bool(items) and is_admin and may_write(user, items)


def sees_rules(user: Any) -> bool:
    """Whether the user has any role: rules name no object, and everybody meets them."""
    return roles.sees_all(user) or bool(roles.bindings_of(user))


def _may_write_by_token(user: Any) -> bool:
    token = roles.token_of(user)
    return token is None or not token.is_read_only
