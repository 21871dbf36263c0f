"""``pause`` and ``resume`` of a ClusterConnection: reason, description, running runs stopped.

A paused cluster gets no requests: no passes, no watches, no canaries. The present run loses its
lease, writes nothing more, and begins again after the sync is resumed.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from policies.db.clock import read_clock
from policies.models import ClusterFollower
from policies.services.write import Action, policy_write
from sync import policy_writes
from sync.connect.connection_history import describe, record_connection
from sync.models import ClusterConnection, SyncRun, SyncState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.models import Cluster

LONGEST_REASON: Final = 1000
_PAUSE_COLUMNS: Final = ("is_paused", "paused_since", "paused_by", "pause_reason")
State = SyncRun.State


def pause(cluster: Cluster, *, user: str, reason: str) -> ClusterConnection:
    """Stop all requests to the cluster; a present run is stopped and waits.

    Raises ``ValidationError``: ``reason_required``, ``not_connected``, ``paused_already``.
    """
    pause_reason = reason.strip()[:LONGEST_REASON]
    if not pause_reason:
        raise ValidationError(
            "give a reason: it is shown while the sync is paused", code="reason_required"
        )
    with _changed_connection(cluster, user=user, reason=pause_reason) as connection:
        if connection.is_paused:
            raise ValidationError(f"already {description(connection)}", code="paused_already")
        connection.is_paused, connection.paused_since = True, read_clock()
        connection.paused_by, connection.pause_reason = user, pause_reason
        _stop_runs(cluster, description(connection))
    # After the commit: it locks used amounts, which decisions lock before the cluster's row.
    transaction.on_commit(lambda: policy_writes.give_up_counting(cluster, "the sync is paused"))
    return connection


def resume(cluster: Cluster, *, user: str, reason: str = "") -> ClusterConnection:
    """Let waiting and due runs begin again; raises ``not_connected``, ``not_paused``."""
    with _changed_connection(
        cluster, user=user, reason=reason.strip()[:LONGEST_REASON]
    ) as connection:
        if not connection.is_paused:
            raise ValidationError("its sync is not paused", code="not_paused")
        connection.is_paused, connection.paused_since = False, None
        connection.paused_by = connection.pause_reason = ""
        SyncState.objects.filter(cluster=cluster).update(due=read_clock())
    return connection


def description(connection: ClusterConnection) -> str:
    """The time, user and reason of a pause as text; empty if the sync is not paused."""
    if not connection.is_paused:
        return ""
    since = connection.paused_since
    paused_when = f" since {since:%Y-%m-%d %H:%M} UTC" if since else ""
    paused_by = f" by {connection.paused_by}" if connection.paused_by else ""
    why_paused = f": {connection.pause_reason}" if connection.pause_reason else ""
    return f"paused{paused_when}{paused_by}{why_paused}"


@contextmanager
def _changed_connection(cluster: Cluster, *, user: str, reason: str) -> Iterator[ClusterConnection]:
    """Yield the connection under lock, then store and record its changes."""
    with transaction.atomic():
        # Workers lock the timetable first; any other order could deadlock with them.
        SyncState.objects.select_for_update().filter(cluster=cluster).first()
        with policy_write(cluster):
            connection_rows = ClusterConnection.objects.select_for_update().filter(cluster=cluster)
            connection = connection_rows.select_related(None).first()
            if connection is None:
                raise ValidationError(f"{cluster.name} is not connected", code="not_connected")
            before = describe(connection)
            yield connection
            connection.save(update_fields=[*_PAUSE_COLUMNS, "updated"])
            record_connection(connection, Action.UPDATE, before=before, author=(user, reason))


def _stop_runs(cluster: Cluster, words: str) -> None:
    """Revoke the present lease, and make its run wait as if it had not begun."""
    lease_states = SyncState.objects.filter(cluster=cluster)
    # The next epoch fences the holder: its writes raise LostLeaseError from now on.
    lease_states.update(epoch=F("epoch") + 1, lease_until=None, holder="")
    followers = ClusterFollower.objects.filter(cluster=cluster)
    followers.update(epoch=F("epoch") + 1, lease_until=None, heartbeat=None, holder="")
    for run in SyncRun.objects.filter(cluster=cluster, state=State.RUNNING).order_by("id"):
        waiting_twin = SyncRun.objects.filter(cluster=cluster, mode=run.mode, state=State.WAITING)
        stopped_run = SyncRun.objects.filter(pk=run.pk)
        # A constraint allows one waiting run of each mode; a follower's batch ends with its lease.
        if run.mode == SyncRun.Mode.WATCH or waiting_twin.exists():
            stopped_run.update(state=State.FAILED, error=words, finished=read_clock(), stage="")
        else:
            attempt = max(run.attempt - 1, 0)
            stopped_run.update(state=State.WAITING, attempt=attempt, stage="", queued=None)
