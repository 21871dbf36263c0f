"""``settle`` a change in review: once nothing is open that rules ask for, it is approved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.change_sets.states import ChangeState, StepKind
from policies.services.changes.approvals.evaluate import standing_of
from policies.services.changes.steps import record_step

if TYPE_CHECKING:
    from policies.models import ChangeSet

NO_APPROVAL_NEEDED: Final = "no approval is asked for"
ALL_THERE: Final = "all that is asked for is there"


def settle(locked: ChangeSet, *, user: str) -> None:
    """Let a locked change pass if it is in review and no need is open."""
    if locked.stands is not ChangeState.IN_REVIEW:
        return
    standing = standing_of(locked)
    if not standing.open:
        note = ALL_THERE if standing.needs else NO_APPROVAL_NEEDED
        record_step(locked, StepKind.PASS, user=user, note=note)
