"""``run_checks`` of a change, asked of a worker where it needs one; ``store_result`` of that."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction

from policies.change_sets.approvals.causes import checks_of
from policies.change_sets.approvals.checks import BY_WORKER, CheckKind, CheckResult, CheckState
from policies.change_sets.states import ChangeState
from policies.db.clock import read_clock
from policies.models import ChangeCheck, ChangeSet
from policies.models.changes.review import LONGEST_WORDS
from policies.services.changes.approvals.evaluate import rules_in_force
from policies.services.changes.approvals.own_checks import own_checks
from policies.services.changes.approvals.refusals import ApprovalRefusedError
from policies.services.changes.approvals.settle import settle

if TYPE_CHECKING:
    from collections.abc import Iterable

STILL_GOOD: Final = timedelta(hours=1)
"""A replay of the same content may be so old when a change is submitted."""
PORTAL: Final = "gatehouse"
"""Takes the steps that no user takes."""
_OPEN: Final = (ChangeState.DRAFT, ChangeState.IN_REVIEW, ChangeState.APPROVED)


def run_checks(change: ChangeSet, *, user: str) -> ChangeSet:
    """Check the content again, all of it; a worker takes the replay and the running pods.

    Raises ApprovalRefusedError for a change that is published or abandoned.
    """
    with transaction.atomic():
        locked: ChangeSet = ChangeSet.objects.select_for_update().get(pk=change.pk)
        if locked.state not in _OPEN:
            message = f"the change is {locked.stands.words}: its checks are those of before"
            raise ApprovalRefusedError("not_open", message)
        store_own_checks(locked, user=user)
        _ask(locked, BY_WORKER, user=user, old=timedelta())
        settle(locked, user=user)
    return locked


def store_own_checks(locked: ChangeSet, *, user: str) -> None:
    """Carry out and store what needs no worker."""
    for result in own_checks(list(locked.items.all())):
        _store(locked, result, user=user)


def ask_for_checks(locked: ChangeSet, *, user: str) -> None:
    """Ask a worker for the numbers that a rule wants and nobody has found for this content.

    What needs no worker is stored since the change was submitted.
    """
    wanted = {kind for rule in rules_in_force() for kind in checks_of(rule) if kind in BY_WORKER}
    have = ChangeCheck.objects.filter(change=locked, content_hash=locked.content_hash)
    known = set(have.exclude(state=CheckState.FAILED).values_list("kind", flat=True))
    _ask(locked, sorted(wanted - known), user=user, old=STILL_GOOD)


def waiting_checks() -> list[ChangeCheck]:
    """What workers have to check: of the content that its change has now, the oldest first."""
    waiting = ChangeCheck.objects.filter(state=CheckState.WAITING, change__state__in=_OPEN)
    rows = waiting.select_related("change").order_by("asked", "pk")
    return [row for row in rows if row.content_hash == row.change.content_hash]


def store_result(check: ChangeCheck, result: CheckResult) -> bool:
    """Store what a worker has found; False where somebody has asked anew since, or edited it.

    A change in review is approved where this was the last thing that it waited for.
    """
    with transaction.atomic():
        locked: ChangeSet = ChangeSet.objects.select_for_update().get(pk=check.change_id)
        waiting = ChangeCheck.objects.filter(
            pk=check.pk,
            state=CheckState.WAITING,
            asked=check.asked,
            content_hash=locked.content_hash,
        )
        if not waiting.exists():
            return False
        _store(locked, result, user=check.user)
        settle(locked, user=PORTAL)
    return True


def _ask(locked: ChangeSet, kinds: Iterable[CheckKind], *, user: str, old: timedelta) -> None:
    for kind in kinds:
        waiting = CheckResult(kind=CheckKind(kind), state=CheckState.WAITING)
        _store(locked, waiting, user=user, old=old)


def _store(
    locked: ChangeSet, result: CheckResult, *, user: str, old: timedelta = timedelta()
) -> None:
    ChangeCheck.objects.update_or_create(
        change=locked,
        kind=result.kind.value,
        defaults={
            "content_hash": locked.content_hash,
            "state": result.state.value,
            "number": result.number,
            "words": result.words[:LONGEST_WORDS],
            "user": user,
            "asked": read_clock() - old,
        },
    )
