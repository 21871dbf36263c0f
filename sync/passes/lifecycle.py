"""SyncRun states: requested, carried out under a lease, ended, retried after a wait, parked.

The rows are the truth; a broker's message only makes a worker look at one.
"""

from __future__ import annotations

import datetime as dt
import logging
import random
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, OperationalError, transaction

from policies.db.clock import read_clock
from sync import alerts, policy_writes
from sync.errors import (
    APIError,
    ForbiddenError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.models import ClusterConnection, SyncResult, SyncRun, SyncState
from sync.runs import leases, queue
from sync.runs.leases import LeaseHeldError, LostLeaseError, beating

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from policies.models import Cluster
    from sync.runs.leases import Lease

log = logging.getLogger(__name__)
State = SyncRun.State
Mode = SyncRun.Mode
LEASE: Final = 40.0
"""Seconds that a lease lasts without a heartbeat."""
ATTEMPTS: Final = 3
"""The attempts of a run before it is parked for a person."""
LOST: Final = dt.timedelta(seconds=LEASE)
"""A run without a heartbeat for so long has lost its worker: each beat renews the lease, too."""
DOUBT: Final = dt.timedelta(seconds=5)
"""Between a list that is suddenly empty and the one that confirms it."""
LONGEST_WAIT: Final = 300.0
"""The most seconds between two attempts, whatever Retry-After requests."""
STOPPED: Final = queue.STOPPED
STOPS: Final = {
    UnauthorizedError: ClusterConnection.State.UNAUTHORIZED,
    ForbiddenError: ClusterConnection.State.FORBIDDEN,
    UntrustedError: ClusterConnection.State.UNTRUSTED,
}
ALERT_STOPPED: Final = "sync-stopped"
ALERT_FAILING: Final = "sync-failing"
ALERT_PARKED: Final = "run-parked"
ALERT_HELD: Final = "deletions-held"
PERSON: Final = queue.PERSON
REQUESTABLE: Final = (Mode.IMPORT, Mode.PREVIEW, Mode.SYNC)
"""Modes that a person may request; watches are the follower's."""


def request(cluster: Cluster, *, mode: str, trigger: str, user: str = "") -> SyncRun:
    """Request a run, or join one of the same mode that waits already.

    ``mode`` is one of ``SyncRun.Mode``; ``trigger`` is schedule, person, policy or watch.
    """
    with transaction.atomic():
        run, is_new = SyncRun.objects.get_or_create(
            cluster=cluster,
            mode=Mode(mode),
            state=State.WAITING,
            defaults={"trigger": trigger, "user": user},
        )
        # A person's run is due at once, so a waiting one must become a person's.
        if not is_new and trigger == PERSON and run.trigger != PERSON:
            SyncRun.objects.filter(pk=run.pk).update(trigger=trigger, user=user)
            run.trigger, run.user = trigger, user
    return run


def request_by_person(cluster: Cluster, *, mode: str, user: str) -> SyncRun:
    """Request a run for a person; raises ``ValidationError``: ``not_connected``, ``paused``."""
    connection = ClusterConnection.objects.filter(cluster=cluster).first()
    if connection is None:
        raise ValidationError("This cluster is not connected.", code="not_connected")
    if connection.is_paused:
        paused_words = "The sync is paused. Resume it first, then ask again."
        raise ValidationError(paused_words, code="paused")
    return request(cluster, mode=mode, trigger=PERSON, user=user)


def carry_out(run_id: int) -> str:
    """Carry out a waiting run, unless another worker holds its cluster; returns its state.

    Errors of the cluster or of the work are stored in the run, never raised.
    """
    run = SyncRun.objects.select_related("cluster").filter(pk=run_id).first()
    if run is None or run.state != State.WAITING:
        return run.state if run else ""
    try:
        with leases.hold(run.cluster, LEASE) as lease:
            if _begin_run(run, lease):
                with beating(lease, run):
                    _work_on_run(run, lease)
    except LeaseHeldError as error:
        log.info("run %s waits: %s", run.uid, error)
    except LostLeaseError as error:
        log.warning("run %s lost its lease: %s", run.uid, error)
    # Read again: another worker may have changed it.
    return SyncRun.objects.filter(pk=run_id).values_list("state", flat=True).first() or ""


def _begin_run(run: SyncRun, lease: Lease) -> bool:
    """Claim the run; False if it no longer waits, or the sync is paused."""
    now = read_clock()
    with lease.guard():
        # Under the guard: a pause locks the same row first, and is seen here or stops the run.
        if ClusterConnection.objects.filter(cluster=run.cluster_id, is_paused=True).exists():
            return False
        waiting_run = SyncRun.objects.filter(pk=run.pk, state=State.WAITING)
        begun_run = waiting_run.update(
            state=State.RUNNING,
            epoch=lease.epoch,
            attempt=run.attempt + 1,
            started=run.started or now,
            heartbeat=now,
            stage="connecting",
            error="",
        )
    run.refresh_from_db()
    return bool(begun_run)


def _work_on_run(run: SyncRun, lease: Lease) -> None:
    """Carry out the run with the cluster's client, and end it in any case."""
    # The client and the passes are large, and web processes only request runs.
    from sync.connect import connections  # noqa: PLC0415 - see above
    from sync.passes import full_pass, ledger_pass  # noqa: PLC0415 - see above

    try:
        with connections.open_client(run.cluster) as client:
            if run.mode != Mode.PREVIEW:
                ledger_pass.try_to_count_new(run.cluster, client, lease)
            state = full_pass.full_pass(run.cluster, client, run, lease)
            if ledger_pass.is_due(run):
                ledger_pass.run_ledger_pass(run.cluster, client, run, lease)
    except APIError as error:
        _end_in_trouble(run, lease, error)
    except LostLeaseError:
        raise
    except Exception as error:  # the outermost layer of the work: a defect must end the run
        log.exception("run %s of %s failed", run.uid, run.cluster)
        _try_again_or_park(run, lease, error)
    else:
        _end_well(run, lease, state)


def _end_well(run: SyncRun, lease: Lease, state: str) -> None:
    ended = read_clock()
    # A list that was doubted is read again soon, but not at once.
    due_again = ended + DOUBT if run.counts.get("doubted") else ended
    was_held_already = state == State.HELD and _is_held_already(run)
    with lease.guard() as cluster_state:
        close_run(run, State.DONE if was_held_already else state, ended)
        SyncState.objects.filter(pk=cluster_state.pk).update(
            failures=0, last_success=ended, stale_since=None, due=due_again
        )
        connections = ClusterConnection.objects.filter(cluster=run.cluster_id)
        connections.exclude(state=ClusterConnection.State.OK).update(
            state=ClusterConnection.State.OK, message="", since=ended
        )
        is_pass = run.mode in (Mode.SYNC, Mode.IMPORT)
        if is_pass and not was_held_already:
            # Earlier held runs are outdated: this pass has compared all objects again.
            held = SyncRun.objects.filter(cluster=run.cluster_id, state=State.HELD)
            held.exclude(pk=run.pk).update(state=State.FAILED, error=f"superseded by run {run.uid}")
    for kind in (ALERT_STOPPED, ALERT_FAILING, ALERT_PARKED):
        alerts.resolve(run.cluster, kind)
    if is_pass:
        held_message = run.error if state == State.HELD else ""
        alerts.set_alert(run.cluster, ALERT_HELD, held_message, severity=alerts.CRITICAL)


def close_run(run: SyncRun, state: str, now: dt.datetime) -> None:
    """Store the end of a run; a follower's run without results leaves no row."""
    if run.mode == Mode.WATCH and state == State.DONE and not run.counts:
        SyncRun.objects.filter(pk=run.pk).delete()
        return
    run.state, run.finished, run.stage = state, now, ""
    run.save(update_fields=["state", "finished", "stage", "counts", "error", "total", "done"])


def _is_held_already(run: SyncRun) -> bool:
    """Whether a person reads about the very same deletions: their run then stays as it is."""
    older_held = SyncRun.objects.filter(cluster=run.cluster_id, state=State.HELD, mode=run.mode)
    held_now = _deletions_held(run)
    return any(_deletions_held(each) == held_now for each in older_held.exclude(pk=run.pk))


def _deletions_held(run: SyncRun) -> set[tuple[str, str, str]]:
    held = run.results.filter(outcome=SyncResult.Outcome.HELD)
    return set(held.order_by().values_list("kind", "namespace", "name"))


def _end_in_trouble(run: SyncRun, lease: Lease, error: APIError) -> None:
    """End a run for an error of the cluster, and schedule the next attempt, if any."""
    ended = read_clock()
    run.error = f"{error.reason}: {error}"
    stop_state = next((state for kind, state in STOPS.items() if isinstance(error, kind)), None)
    with lease.guard() as state:
        close_run(run, State.FAILED, ended)
        failures = state.failures + 1
        retry_wait = wait_after(failures, getattr(error, "retry_after", None))
        SyncState.objects.filter(pk=state.pk).update(
            failures=failures,
            due=ended + dt.timedelta(seconds=retry_wait),
            stale_since=state.stale_since or ended,
        )
        if stop_state or isinstance(error, UnreachableError):
            trouble_state = stop_state or ClusterConnection.State.UNREACHABLE
            connections = ClusterConnection.objects.filter(cluster=run.cluster_id)
            connections.exclude(state=trouble_state).update(since=ended)
            connections.update(state=trouble_state, message=run.error)
    if stop_state or isinstance(error, UnreachableError):
        policy_writes.give_up_counting(run.cluster, str(error))
    _alert_failures(run, is_stopped=stop_state is not None, failures=failures)


def _alert_failures(run: SyncRun, *, is_stopped: bool, failures: int) -> None:
    if is_stopped:
        message = f"the sync is stopped until a person resolves this: {run.error}"
        alerts.raise_alert(run.cluster, ALERT_STOPPED, severity=alerts.CRITICAL, message=message)
    elif failures >= ATTEMPTS:
        message = f"{failures} passes in a row failed: {run.error}"
        alerts.raise_alert(run.cluster, ALERT_FAILING, severity=alerts.WARNING, message=message)


def wait_after(failures: int, retry_after: float | None = None) -> float:
    """Seconds until the next attempt: doubling from 1 to 300, with jitter, or Retry-After."""
    # Jitter: clusters that failed together, behind one network, must not return together.
    longest_wait = min(LONGEST_WAIT, 2.0 ** min(failures - 1, 16))
    jittered_wait = max(1.0, longest_wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, no secret
    return max(jittered_wait, min(retry_after or 0.0, LONGEST_WAIT))


def _try_again_or_park(run: SyncRun, lease: Lease, error: Exception) -> None:
    """Retry a run that failed by a defect, or park it for a person."""
    with lease.guard() as state:
        failures = state.failures + 1
        retry_due = read_clock() + dt.timedelta(seconds=wait_after(failures))
        SyncState.objects.filter(pk=state.pk).update(failures=failures, due=retry_due)
        # An unavailable database is no defect, and does not count as an attempt.
        if isinstance(error, OperationalError):
            run.attempt -= 1
            SyncRun.objects.filter(pk=run.pk).update(attempt=run.attempt)
        wait_again(run, error=f"{type(error).__name__}: {error}")
    policy_writes.give_up_counting(run.cluster, type(error).__name__)


def wait_again(run: SyncRun, *, error: str) -> None:
    """Make a begun run wait again; after three attempts park it with an alert."""
    running_run = SyncRun.objects.filter(pk=run.pk, state=State.RUNNING, epoch=run.epoch)
    if run.attempt >= ATTEMPTS:
        message = f"parked after {run.attempt} attempts; the last one: {error}"
        if running_run.update(state=State.PARKED, error=message, finished=read_clock()):
            alerts.raise_alert(run.cluster, ALERT_PARKED, severity=alerts.CRITICAL, message=message)
    elif not _waits_again(running_run, error):
        running_run.update(state=State.FAILED, error=f"{error}; another such run waits")


def _waits_again(running_run: QuerySet[SyncRun], error: str) -> bool:
    """Make the run wait, unless another one of its mode waits already."""
    # The constraint decides, since another run may come to wait at this moment.
    try:
        with transaction.atomic():
            running_run.update(state=State.WAITING, error=error, queued=None)
    except IntegrityError:
        return False
    return True


def recover_lost() -> int:
    """Retry or park the runs whose worker is lost; returns their number."""
    recovered_at = read_clock()
    lost_runs = SyncRun.objects.filter(state=State.RUNNING, heartbeat__lt=recovered_at - LOST)
    recovered = 0
    # A follower's run covers one batch of changes, which its successor finds again by lists.
    lost_runs.filter(mode=Mode.WATCH).update(
        state=State.FAILED, error="its follower was lost", finished=recovered_at
    )
    for run in lost_runs.select_related("cluster").order_by("id"):
        lease_rows = SyncState.objects.filter(cluster=run.cluster_id, epoch=run.epoch)
        if not lease_rows.filter(lease_until__gt=recovered_at).exists():
            wait_again(run, error="its worker was lost")
            recovered += 1
    return recovered
