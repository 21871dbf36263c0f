"""``start`` a roll-out, ``advance`` it to its next stage, ``stop`` it and ``resume`` it.

Each is one transaction under the lock of the change, together with the policies it writes: whoever
is killed in it has done nothing, and whoever repeats it finds it done.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from policies.change_sets.rollout.modes import staged
from policies.change_sets.states import StepKind
from policies.db.clock import read_clock
from policies.models import Rollout, RolloutStage
from policies.services.changes.approvals.evaluate import require_approved
from policies.services.changes.rollout.plan import assign_items
from policies.services.changes.steps import lock, record_step
from policies.services.changes.written import written

if TYPE_CHECKING:
    from datetime import datetime

    from policies.change_sets.rollout.plan import StagePlan
    from policies.models import ChangeItem, ChangeSet

MOST_TOLD: Final = 5
"""So many roll-outs are told of at once."""


def start(change: ChangeSet, *, user: str, seen: str = "", note: str = "") -> ChangeSet:
    """Take the first stage of an approved change with a plan.

    Raises ``ValidationError`` without a plan, and what ``publish`` raises.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.START, seen=seen)
        require_approved(locked)
        rollout = Rollout.objects.filter(change=locked).first()
        if rollout is None:
            raise ValidationError("plan the roll-out first", code="no_plan")
        assign_items(locked, rollout.to_plan())
        rollout.starter = user
        _take_stage(locked, rollout)
        record_step(locked, StepKind.START, user=user, note=note)
    return locked


def advance(change: ChangeSet, *, expected: int) -> ChangeSet:
    """Take the stage after the ``expected`` one, or finish; where it is past it, do nothing.

    Whoever started it is the author of what is written. Raises ItemsRefusedError where an object
    was written since, and StepRefusedError where it is not rolling out.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.FINISH)
        rollout = Rollout.objects.get(change=locked)
        if rollout.at != expected:
            return locked
        if rollout.at < rollout.total:
            _take_stage(locked, rollout)
            return locked
        _end_stage(rollout, read_clock())
        rollout.ends = None
        rollout.save()
        record_step(locked, StepKind.FINISH, user=rollout.starter)
    return locked


def stop(change: ChangeSet, *, user: str, note: str = "", tripped: str = "") -> ChangeSet:
    """Stop where it is; what is written stays. ``tripped`` says why it stopped by itself."""
    with transaction.atomic():
        locked = lock(change, step=StepKind.STOP)
        rollout = Rollout.objects.get(change=locked)
        left = (rollout.ends - read_clock()) if rollout.ends else timedelta(0)
        rollout.left, rollout.ends = max(left, timedelta(0)), None
        rollout.tripped, rollout.unseen = tripped, bool(tripped)
        rollout.save()
        record_step(locked, StepKind.STOP, user=user, note=note or tripped)
    return locked


def resume(change: ChangeSet, *, user: str, note: str = "") -> ChangeSet:
    """Go on where it stopped: the stage lasts as long as it had left, and guards count anew."""
    with transaction.atomic():
        locked = lock(change, step=StepKind.RESUME)
        rollout = Rollout.objects.get(change=locked)
        now = read_clock()
        rollout.since, rollout.ends = now, now + (rollout.left or timedelta(0))
        rollout.left, rollout.tripped, rollout.unseen = None, "", False
        rollout.save()
        record_step(locked, StepKind.RESUME, user=user, note=note)
    return locked


def unseen_of(user: str) -> list[Rollout]:
    """The roll-outs that somebody started, that stopped by themselves, and that are unseen."""
    rows = Rollout.objects.filter(starter=user, unseen=True).order_by("-pk")
    return list(rows.only("change_id", "tripped")[:MOST_TOLD])


def see(change: ChangeSet, *, user: str) -> None:
    """Note that whoever started it has looked; one write, once."""
    Rollout.objects.filter(change=change, starter=user, unseen=True).update(unseen=False)


def _take_stage(locked: ChangeSet, rollout: Rollout) -> None:
    """Write the next stage of a locked change, and note that it has begun."""
    wave, stage = rollout.to_plan().stages[rollout.at]
    now = read_clock()
    items = _staged_items(locked, wave, stage)
    reason = f"{locked}: {locked.title} (wave {wave}, {stage.mode})"
    before = {item.pk: item.written for item in items}
    with written(locked, user=rollout.starter, reason=reason, items=items):
        _end_stage(rollout, now)
        rollout.at += 1
        rollout.since, rollout.ends = now, now + timedelta(seconds=stage.dwell)
        rollout.save()
        RolloutStage.objects.create(
            rollout=rollout,
            number=rollout.at,
            wave=wave,
            mode=stage.mode.value,
            written=sum(item.written != before[item.pk] for item in items),
            began=now,
        )


def _end_stage(rollout: Rollout, now: datetime) -> None:
    RolloutStage.objects.filter(rollout=rollout, ended=None).update(ended=now)


def _staged_items(locked: ChangeSet, wave: int, stage: StagePlan) -> list[ChangeItem]:
    """What a stage writes; the rows keep what was proposed."""
    items = []
    for item in locked.items.filter(wave=wave):
        found = staged(item.to_content(), stage.mode)
        if found.is_written:
            item.content = found.content
            items.append(item)
    return items
