"""``publish`` a change set, and ``revert`` it: all of it in one transaction, or nothing."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from django.db import transaction

from policies.change_sets.states import StepKind
from policies.db.clock import read_clock
from policies.models import ChangeItem, Cluster, PolicyRevision, RolloutStage
from policies.services.changes.approvals.evaluate import require_approved
from policies.services.changes.refusals import ItemProblem, ItemsRefusedError
from policies.services.changes.steps import lock, record_step
from policies.services.changes.take_back import take_back
from policies.services.changes.written import item_problem, items_by_cluster, open_writes, written
from policies.services.write import last_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policies.models import ChangeSet


def publish(change: ChangeSet, *, user: str, seen: str = "", note: str = "") -> ChangeSet:
    """Write all objects of an approved change set; its number is in the reason of each revision.

    It is one write of each cluster, with one number. Raises ItemsRefusedError with every object
    whose base has moved or that its rules refuse, ApprovalsMissingError where the rules of now ask
    for more than it has, OutdatedChangeError and StepRefusedError.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.PUBLISH, seen=seen)
        require_approved(locked)
        with written(locked, user=user, reason=f"{locked}: {locked.title}"):
            record_step(locked, StepKind.PUBLISH, user=user, note=note)
    return locked


def revert(change: ChangeSet, *, user: str, note: str = "") -> ChangeSet:
    """Restore every object that a published change set wrote, in one write of each cluster.

    Raises ItemsRefusedError with every object that was written since, and StepRefusedError.
    """
    with transaction.atomic(), ExitStack() as writes:
        locked = lock(change, step=StepKind.REVERT)
        items = items_by_cluster(locked.items.filter(written__isnull=False))
        clusters = writes.enter_context(open_writes(items))
        problems = [
            problem
            for cluster in clusters
            for problem in _written_since(cluster, items[cluster.name])
        ]
        if problems:
            raise ItemsRefusedError(problems)
        for cluster in clusters:
            revisions = _revisions_of(cluster, items[cluster.name])
            take_back(cluster, revisions, user=user, reason=f"reverts {locked}: {locked.title}")
        RolloutStage.objects.filter(rollout__change=locked, ended=None).update(ended=read_clock())
        record_step(locked, StepKind.REVERT, user=user, note=note)
    return locked


def _written_since(cluster: Cluster, items: Sequence[ChangeItem]) -> Iterator[ItemProblem]:
    numbers = last_numbers(cluster, [item.key for item in items])
    for item in items:
        found = numbers.get(item.key, 0)
        if found != item.written:
            message = f"was written since: the change wrote revision {item.written}, not {found}"
            yield item_problem(item, "written_since", message)


def _revisions_of(cluster: Cluster, items: Sequence[ChangeItem]) -> list[PolicyRevision]:
    written = {(*item.key, item.written) for item in items}
    revisions = PolicyRevision.objects.filter(
        cluster=cluster.name,
        kind__in={item.kind for item in items},
        namespace__in={item.namespace for item in items},
        name__in={item.name for item in items},
        number__in={item.written for item in items},
    )
    # The sets may match further revisions.
    found = [
        each for each in revisions if (each.kind, each.namespace, each.name, each.number) in written
    ]
    staged = {item.key: item.base for item in items if item.wave is not None}
    for each in found:
        # A roll-out may have written it several times: what it restores was there before all.
        key = each.kind, each.namespace, each.name
        each.before = staged.get(key, each.before)
    return found
