"""``submit`` a change, ``approve`` it, or ``request_changes``: what reviews consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction

from policies.change_sets.states import StepKind
from policies.models import ChangeApproval
from policies.services.changes.approvals.evaluate import approvals_of
from policies.services.changes.approvals.permissions import (
    grants_of,
    may_approve,
    places_of,
    who_wrote,
)
from policies.services.changes.approvals.refusals import ApprovalRefusedError, own_change
from policies.services.changes.approvals.settle import settle
from policies.services.changes.approvals.worker_checks import ask_for_checks, store_own_checks
from policies.services.changes.steps import lock, record_step

if TYPE_CHECKING:
    from policies.models import ChangeSet


def submit(change: ChangeSet, *, user: str, seen: str = "", note: str = "") -> ChangeSet:
    """Ask for reviews, and check the content; approved at once where no rule asks for anything.

    Raises ``ValidationError`` for a change without objects.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.SUBMIT, seen=seen)
        if not locked.items.exists():
            raise ValidationError("a change without objects is not submitted", code="no_objects")
        record_step(locked, StepKind.SUBMIT, user=user, note=note)
        store_own_checks(locked, user=user)
        ask_for_checks(locked, user=user)
        settle(locked, user=user)
    return locked


def approve(change: ChangeSet, *, user: Any, seen: str, note: str = "") -> ChangeSet:
    """Approve the content that was seen; the last approval that is asked for lets it pass.

    ``user`` is the account. Raises ApprovalRefusedError, StepRefusedError, OutdatedChangeError.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.APPROVE, seen=seen)
        _require_reviewer(locked, user)
        name = user.get_username()
        if has_approved(locked, user=user):
            raise ApprovalRefusedError("approved_already", "you have approved it already")
        step = record_step(locked, StepKind.APPROVE, user=name, note=note)
        grants = grants_of(user, places_of(locked.items.all()))
        rows = sorted([*place, role] for place, role in grants)
        ChangeApproval.objects.create(step=step, grants=rows)
        settle(locked, user=name)
    return locked


def has_approved(change: ChangeSet, *, user: Any) -> bool:
    """Whether the user has approved the present content since it was last submitted."""
    name = user.get_username()
    return any(each.user == name for each in approvals_of(change))


def request_changes(change: ChangeSet, *, user: Any, note: str) -> ChangeSet:
    """Send a change back to its author as a draft; the note says what has to be other.

    Raises ApprovalRefusedError, StepRefusedError, and ``ValidationError`` without a note.
    """
    if not note.strip():
        raise ValidationError({"note": ValidationError("say what to change", code="required")})
    with transaction.atomic():
        locked = lock(change, step=StepKind.REQUEST_CHANGES)
        _require_reviewer(locked, user)
        record_step(locked, StepKind.REQUEST_CHANGES, user=user.get_username(), note=note)
    return locked


def _require_reviewer(locked: ChangeSet, user: Any) -> None:
    if user.get_username() in who_wrote(locked):
        raise own_change()
    if not may_approve(user, locked):
        message = "you are no editor, approver or admin of a namespace of this change"
        raise ApprovalRefusedError("no_role", message)
