"""``publish_now`` without approvals, flagged until somebody else took the step ``review``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction

from policies.change_sets.states import StepKind
from policies.services.changes.approvals.permissions import may_review, who_wrote
from policies.services.changes.approvals.refusals import ApprovalRefusedError, own_change
from policies.services.changes.steps import lock, record_step
from policies.services.changes.written import written

if TYPE_CHECKING:
    from policies.models import ChangeSet


def publish_now(change: ChangeSet, *, user: str, reason: str, seen: str = "") -> ChangeSet:
    """Write all objects of a change without its approvals and checks; it is flagged until reviewed.

    Who may is asked before. Raises what ``publish`` raises, and ``ValidationError`` without a
    reason or objects.
    """
    if not reason.strip():
        error = ValidationError("must not be empty: it stays on record", code="required")
        raise ValidationError({"reason": error})
    with transaction.atomic():
        locked = lock(change, step=StepKind.PUBLISH_NOW, seen=seen)
        if not locked.items.exists():
            raise ValidationError("a change without objects is not published", code="no_objects")
        with written(locked, user=user, reason=f"{locked}: {locked.title} (now: {reason})"):
            locked.unreviewed = True
            record_step(locked, StepKind.PUBLISH_NOW, user=user, note=reason)
    return locked


def review(change: ChangeSet, *, user: Any, note: str = "") -> ChangeSet:
    """Say of a change that was published without approvals that it was looked at; no flag is left.

    ``user`` is the account. Raises ApprovalRefusedError and StepRefusedError.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.REVIEW)
        if user.get_username() in who_wrote(locked):
            raise own_change()
        if not may_review(user, locked):
            message = "you are not editor, approver or admin of all namespaces of this change"
            raise ApprovalRefusedError("no_role", message)
        if not locked.unreviewed:
            raise ApprovalRefusedError("not_flagged", "nothing of it waits for a review")
        locked.unreviewed = False
        record_step(locked, StepKind.REVIEW, user=user.get_username(), note=note)
    return locked
