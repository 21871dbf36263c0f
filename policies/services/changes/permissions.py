"""Who sees which change sets and objects of them, and who may take which steps; by roles alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.db.models import Case, Count, Q, Value, When

from policies import roles
from policies.change_sets.states import StepKind
from policies.models import ChangeItem, ChangeSet, ChangeStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

_NAMING: Final = (StepKind.STOP, StepKind.REVERT)
"""Steps whose notes may be a guard's words."""
_REVERSED: Final = {"add": "delete", "delete": "add", "change": "change"}
_ACTION: Final = Case(
    When(content__isnull=True, then=Value("delete")),
    When(base__isnull=True, then=Value("add")),
    default=Value("change"),
)


class PlacedWrite(Protocol):
    """A write of something somewhere; what a permission for it depends on."""

    @property
    def cluster(self) -> str:
        """Its cluster."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def kind(self) -> str:
        """The kind of the object."""

    @property
    def action(self) -> str:
        """``add``, ``change`` or ``delete``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemGroup:
    """The objects of a change set on which one permission decides, and how many they are."""

    cluster: str
    namespace: str
    kind: str
    action: str
    number: int


def item_groups(change: ChangeSet) -> list[ItemGroup]:
    """What a change set writes, without its contents; one query, however many objects it has."""
    of_group = ("cluster", "namespace", "kind", "verb")
    counted = (
        change.items.annotate(verb=_ACTION)
        .order_by(*of_group)
        .values_list(*of_group)
        .annotate(number=Count("pk"))
    )
    return [
        ItemGroup(cluster=cluster, namespace=namespace, kind=kind, action=action, number=number)
        for cluster, namespace, kind, action, number in counted
    ]


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


def visible_steps(
    change: ChangeSet, user: Any, *, steps: Iterable[ChangeStep] | None = None
) -> list[ChangeStep]:
    """These steps, or all; edits name objects to those who may see any object, and the author.

    An object may be where this user sees nothing, or have been taken out again. A guard that
    stopped a roll-out names owners, to those who see all its places.
    """
    steps = list(change.steps.all() if steps is None else steps)
    if not roles.sees_all(user) and change.author != user.get_username():
        for step in steps:
            if step.step == StepKind.EDIT:
                step.note = ""
    named = [step for step in steps if step.step in _NAMING and step.note]
    if named and not sees_rollout(user, change):
        for step in named:
            step.note = ""
    return steps


def sees_places(user: Any, groups: Iterable[ItemGroup]) -> bool:
    """Whether the user sees every place that a change set writes to."""
    return all(roles.sees(user, each.cluster, each.namespace) for each in groups)


def sees_rollout(
    user: Any, change: ChangeSet, *, groups: Sequence[ItemGroup] | None = None
) -> bool:
    """Whether the user may read the plan of its roll-out, and why it stopped: both name places.

    ``groups`` are the change's, if they are known.
    """
    if roles.sees_all(user):
        return True
    if change.author == user.get_username() and not roles.is_scoped(user):
        return True
    return sees_places(user, item_groups(change) if groups is None else groups)


def may_create(user: Any) -> bool:
    """Whether the user may write any policy anywhere, and thus propose it."""
    return any(
        roles.may_somewhere(user, roles.writing(kind, action))
        for kind in ("LimitRange", "MetadataPolicy", "ResourceQuota")
        for action in ("add", "change", "delete")
    )


def may_write(user: Any, items: Iterable[PlacedWrite], *, is_revert: bool = False) -> bool:
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


def may_steer(user: Any, change: ChangeSet, *, groups: Sequence[ItemGroup] | None = None) -> bool:
    """Whether the user may describe, submit, withdraw or abandon: the author, or who may write it.

    Of a change without objects, the author alone. ``groups`` are the change's, if they are known.
    """
    if change.author == user.get_username():
        return may_create(user)
    if groups is None:
        groups = item_groups(change)
    return bool(groups) and may_write(user, groups)
