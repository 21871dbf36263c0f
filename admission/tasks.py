"""Celery tasks of the record: partitions, exports, retention, tallies; replays and roll-outs."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings

from admission import change_checks
from admission.models import BackgroundWork, Tally, note_work, partitions
from admission.record import export, retention
from admission.record.search import day_tallies
from admission.replay import work
from admission.rollout import work as rollout_work

log = logging.getLogger(__name__)
LONGEST: Final = 300.0  # seconds of one run; the next one resumes
TALLYING: Final = 30.0
CHECKING: Final = 60.0
# Celery's limits, in seconds: they end a run that hangs in the file system or in a lock.
SOFT_LIMIT: Final = 540
HARD_LIMIT: Final = 570
MESSAGE_EXPIRES: Final = 30.0
"""Seconds; beat sends a new message long before, so an old one would only repeat work."""


@shared_task
def prepare_partitions() -> None:
    """Create the partitions of the coming days."""
    partitions.ensure_ahead()


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def export_record() -> None:
    """Export the days that are over, if retention ever removes rows."""
    if settings.GATEHOUSE_RETENTION_ALLOWED_DAYS or settings.GATEHOUSE_RETENTION_DENIED_DAYS:
        until = time.monotonic() + LONGEST
        try:
            for day in export.due(now=datetime.now(UTC)):
                export.export_day(day, until=until)
        except export.OutOfTimeError:
            log.warning("export of the record stopped: out of time")
        except (export.ExportError, OSError) as error:
            log.error("export of the record failed: %s", error)  # noqa: TRY400 - a trace adds nothing
            note_work(BackgroundWork.Name.EXPORT, str(error) or type(error).__name__)
            return
        note_work(BackgroundWork.Name.EXPORT)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def apply_retention() -> None:
    """Remove rows whose retention period is over, and entries of the ledger's journal."""
    problem, until = "", time.monotonic() + LONGEST
    for removal in retention.apply(today=retention.today(), until=until):
        if removal.problem:
            problem = f"{removal.day} stays on record: {removal.problem}"
            log.error(problem)
        else:
            log.info("%s: %s %s rows removed", removal.day, removal.going, removal.verdicts)
    removed = retention.remove_ledger_entries(today=retention.today(), until=until)
    if removed:
        log.info("%s entries of the ledger's journal removed", removed)
    note_work(BackgroundWork.Name.RETENTION, problem)


@shared_task
def tally_answers() -> None:
    """Count the decisions of the last minutes; after a pause, as many as there is time for."""
    Tally.objects.bring_up_to_date(now=datetime.now(UTC), until=time.monotonic() + TALLYING)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def tally_days() -> None:
    """Count the values of days that are over."""
    day_tallies.tally_days(now=datetime.now(UTC), until=time.monotonic() + LONGEST)


@shared_task
def queue_due_replays() -> None:
    """Notify workers of replays that wait, or whose worker ended; the rows say which."""
    for uid in work.due():
        carry_out_replay.apply_async((str(uid),), expires=MESSAGE_EXPIRES)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def carry_out_replay(uid: str) -> None:
    """Carry out one replay, if it still waits and no other worker has it."""
    replay_uid = UUID(uid)
    try:
        work.carry_out(replay_uid)
    except SoftTimeLimitExceeded:
        work.fail(replay_uid, f"it took longer than {SOFT_LIMIT // 60} minutes: replay fewer days")
    except Exception as error:
        work.fail(replay_uid, f"an error of ours: {type(error).__name__}")
        raise


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def check_changes() -> None:
    """Carry out the checks that submitted changes wait for; a replay's end is seen next time."""
    change_checks.take_checks(until=time.monotonic() + CHECKING)


@shared_task
def forget_old_replays() -> None:
    """Delete replays that are over and old, or more than are kept."""
    work.forget_old()


@shared_task
def queue_rollouts() -> None:
    """Let workers look at each roll-out that is under way; the rows say which."""
    for pk in rollout_work.running():
        go_on_with_rollout.apply_async((pk,), expires=MESSAGE_EXPIRES)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def go_on_with_rollout(pk: int) -> None:
    """Judge the guards of one roll-out, and make the move that is due."""
    rollout_work.go_on(pk)
