"""``trip``: stop a roll-out because a guard says so, and take back what it wrote if it is to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from policies.services.changes.publish import revert
from policies.services.changes.refusals import ItemsRefusedError
from policies.services.changes.rollout.run import stop

if TYPE_CHECKING:
    from policies.models import ChangeSet

TRIPPED_ELSEWHERE: Final = "the reason names places that you do not see"
"""Stands for the reason, for those who see a part of a change."""


def trip(change: ChangeSet, *, user: str, words: str, reverts: bool) -> ChangeSet:
    """Stop it, and revert it in the same transaction; what was written since keeps it stopped.

    Raises StepRefusedError where it is not rolling out any more.
    """
    if not reverts:
        return stop(change, user=user, tripped=words)
    try:
        with transaction.atomic():
            stop(change, user=user, tripped=words)
            return revert(change, user=user, note=words)
    except ItemsRefusedError as error:
        return stop(change, user=user, tripped=f"{words}; it could not be reverted: {error}"[:2000])
