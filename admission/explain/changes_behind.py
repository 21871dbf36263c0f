"""``changes_behind``: the change sets that wrote revisions, with those who approved them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.change_sets.states import StepKind
from policies.models import ChangeItem, ChangeSet, ChangeStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policies.models import PolicyRevision


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBehind:
    """The change that wrote a revision; ``approvers`` are people, in the order of approving."""

    change: ChangeSet
    approvers: Sequence[str] = ()


def changes_behind(revisions: Iterable[PolicyRevision]) -> Mapping[int, ChangeBehind]:
    """The change behind each revision, by the revision's id; at most two queries.

    A revision that no change wrote is left out. Whoever sees a revision sees its change: they name
    the same place.
    """
    by_place = {
        (each.cluster, each.kind, each.namespace, each.name, each.number): each.pk
        for each in revisions
    }
    if not by_place:
        return {}
    items = ChangeItem.objects.select_related("change").filter(
        cluster__in={place[0] for place in by_place},
        namespace__in={place[2] for place in by_place},
        name__in={place[3] for place in by_place},
        written__in={place[4] for place in by_place},
    )
    # The sets may match further items.
    change_of = {
        by_place[place]: item.change
        for item in items
        if (place := (item.cluster, *item.key, item.written)) in by_place
    }
    approvers = _approvers(change_of.values())
    return {
        revision: ChangeBehind(change=change, approvers=approvers.get(change.pk, ()))
        for revision, change in change_of.items()
    }


def _approvers(changes: Iterable[ChangeSet]) -> dict[int, list[str]]:
    """Who approved what was published: since it was last submitted; nobody where no rule asks."""
    authors = {change.pk: change.author for change in changes}
    if not authors:
        return {}
    steps = ChangeStep.objects.filter(
        change__in=authors, step__in=(StepKind.SUBMIT, StepKind.APPROVE)
    )
    approvers: dict[int, list[str]] = {}
    for step in steps.order_by("pk"):
        if step.step == StepKind.SUBMIT:
            approvers[step.change_id] = []
        elif step.user != authors[step.change_id]:
            approvers.setdefault(step.change_id, []).append(step.user)
    return approvers
