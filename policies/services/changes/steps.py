"""Steps of change sets: each under the row's lock, by the state machine, on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from policies.change_sets.content import content_hash
from policies.change_sets.states import StepKind, state_after
from policies.models import ChangeSet, ChangeStep
from policies.models.changes.change_set import LONGEST_NOTE

if TYPE_CHECKING:
    from collections.abc import Mapping

_DESCRIPTION: Final = ("title", "reason", "ticket")


class OutdatedChangeError(Exception):
    """The change set has another content than the one that was seen."""

    def __init__(self) -> None:
        super().__init__("the change was edited meanwhile: look at it again")


def create_change(*, title: str, user: str, reason: str = "", ticket: str = "") -> ChangeSet:
    """Create a change set without objects; raises ``ValidationError``."""
    change = ChangeSet(
        title=title.strip(),
        reason=reason,
        ticket=ticket,
        author=user,
        content_hash=content_hash([]),
    )
    change.full_clean()
    change.save()
    return change


def describe_change(change: ChangeSet, *, description: Mapping[str, str], user: str) -> ChangeSet:
    """Set title, reason or ticket; what was approved stays so. Raises ``ValidationError``."""
    with transaction.atomic():
        locked = lock(change, step=StepKind.DESCRIBE)
        changed = [
            name
            for name in _DESCRIPTION
            if name in description and description[name] != getattr(locked, name)
        ]
        if not changed:
            return locked
        for name in changed:
            setattr(locked, name, description[name])
        locked.full_clean()
        record_step(locked, StepKind.DESCRIBE, user=user, note=", ".join(changed))
    return locked


def comment(change: ChangeSet, *, user: str, note: str) -> ChangeSet:
    """Put a comment on record; raises ``ValidationError`` for an empty or too long one."""
    if not note.strip():
        raise ValidationError({"note": ValidationError("must not be empty", code="required")})
    return _take(change, StepKind.COMMENT, user=user, note=note)


def withdraw(change: ChangeSet, *, user: str, note: str = "") -> ChangeSet:
    """Take a submitted change back to a draft."""
    return _take(change, StepKind.WITHDRAW, user=user, note=note)


def abandon(change: ChangeSet, *, user: str, note: str = "") -> ChangeSet:
    """Give a change up that is not published."""
    return _take(change, StepKind.ABANDON, user=user, note=note)


def _take(change: ChangeSet, step: StepKind, *, user: str, note: str) -> ChangeSet:
    with transaction.atomic():
        locked = lock(change, step=step)
        record_step(locked, step, user=user, note=note)
    return locked


def lock(change: ChangeSet, *, step: StepKind, seen: str = "") -> ChangeSet:
    """Read a change set again under its lock, inside a transaction, to take a step.

    Raises StepRefusedError, and OutdatedChangeError if the content is not the one whose hash was
    ``seen``.
    """
    locked: ChangeSet = ChangeSet.objects.select_for_update().get(pk=change.pk)
    state_after(locked.stands, step)
    if seen and seen != locked.content_hash:
        raise OutdatedChangeError
    return locked


def record_step(locked: ChangeSet, step: StepKind, *, user: str, note: str = "") -> ChangeStep:
    """Move a locked change set by a step, save it, and put the step on record.

    Raises StepRefusedError, and ``ValidationError`` for a note that is too long.
    """
    if len(note) > LONGEST_NOTE:
        message = f"must have at most {LONGEST_NOTE} characters"
        raise ValidationError({"note": ValidationError(message, code="max_length")})
    state_before, locked.state = locked.state, state_after(locked.stands, step).value
    locked.save()
    recorded: ChangeStep = ChangeStep.objects.create(
        change=locked,
        step=step.value,
        state_before=state_before,
        state_after=locked.state,
        user=user,
        note=note,
        content_hash=locked.content_hash,
    )
    return recorded
