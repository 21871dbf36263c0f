"""Who sees which change sets and objects of them, and who may take which steps; by roles alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from policies import roles
from policies.change_sets.states import StepKind
from policies.models import ChangeItem, ChangeSet, ChangeStep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

_REVERSED: Final = {"add": "delete", "delete": "add", "change": "change"}


def visible_changes(user: Any) -> QuerySet[ChangeSet]:
    """The change sets with an object in a place that the user sees, and the user's own."""
    changes = ChangeSet.objects.all()
    if roles.sees_all(user):
        return changes
    seen = roles.visible(ChangeItem.objects.all(), user, cluster="cluster", namespace="namespace")
    visible = Q(pk__in=seen.order_by().values("change"))
    # A token for a part of the fleet does not show what its owner proposes elsewhere.
    if not roles.is_scoped(user):
        visible |= Q(author=user.get_username())
    return changes.filter(visible)


def visible_items(change: ChangeSet, user: Any) -> QuerySet[ChangeItem]:
    """The objects of a change set that lie where the user sees something."""
    return roles.visible(change.items.all(), user, cluster="cluster", namespace="namespace")


def visible_steps(change: ChangeSet, user: Any) -> list[ChangeStep]:
    """All steps; the objects that edits name are for those who may see any object, and the author.

    An object may be where this user sees nothing, or have been taken out again.
    """
    steps = list(change.steps.all())
    if not roles.sees_all(user) and change.author != user.get_username():
        for step in steps:
            if step.step == StepKind.EDIT:
                step.note = ""
    return steps


def may_create(user: Any) -> bool:
    """Whether the user may write any policy anywhere, and thus propose it."""
    return any(
        roles.may_somewhere(user, roles.writing(kind, action))
        for kind in ("LimitRange", "MetadataPolicy", "ResourceQuota")
        for action in ("add", "change", "delete")
    )


def may_write(user: Any, items: Iterable[ChangeItem], *, is_revert: bool = False) -> bool:
    """Whether the user may write every one of these objects as proposed, or take it back."""
    return all(
        roles.may(
            user,
            roles.writing(item.kind, _REVERSED[item.action] if is_revert else item.action),
            cluster=item.cluster,
            namespace=item.namespace,
        )
        for item in items
    )


def may_steer(user: Any, change: ChangeSet) -> bool:
    """Whether the user may describe, submit, withdraw or abandon: the author, or who may write it.

    Of a change without objects, the author alone.
    """
    if change.author == user.get_username():
        return may_create(user)
    items = list(change.items.all())
    return bool(items) and may_write(user, items)
