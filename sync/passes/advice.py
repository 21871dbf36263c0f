"""Sentences that advise people: why a SyncRun waits or failed, the cure of a connection state."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from policies.db.clock import read_clock
from sync.models import ClusterConnection, SyncRun, SyncState
from sync.passes.lifecycle import LEASE, STOPPED
from sync.runs.pause import description

if TYPE_CHECKING:
    from policies.models import Cluster

_CONNECTION: Final = ClusterConnection.State
_RUN: Final = SyncRun.State
CONNECTION_HINTS: Final = {
    _CONNECTION.NEW: "The sync worker tests the connection as soon as it runs.",
    _CONNECTION.UNREACHABLE: "The API server does not answer. The portal retries automatically, at "
    "growing intervals of up to 5 minutes.",
    _CONNECTION.UNAUTHORIZED: "The API server does not accept the credential (401), or it cannot "
    "be opened. Nothing is retried automatically: connect the cluster again with a valid "
    "credential.",
    _CONNECTION.FORBIDDEN: "The credential is known but may not do what is needed (403). Nothing "
    "is retried automatically: apply the cluster's manifests, which grant it, then synchronize.",
    _CONNECTION.UNTRUSTED: "The API server could not prove that it is this cluster: its "
    "certificate is not signed by the authority known here, or another cluster answers. Nothing "
    "is retried automatically: find out why, then connect the cluster again with its present "
    "kubeconfig (page, or manage.py connect_cluster).",
}
"""The meaning and the cure of each connection state but OK."""
PATIENCE: Final = dt.timedelta(seconds=20)
"""A shorter wait needs no advice: beat schedules, and workers send heartbeats, every 5 seconds."""


def advice(run: SyncRun) -> str:
    """Advice about a run: what to do, or what happens by itself; empty if it needs none."""
    now = read_clock()
    sync_state = SyncState.objects.filter(cluster=run.cluster_id).first()
    if run.state == _RUN.WAITING:
        return _waiting(run, sync_state, now)
    if run.state == _RUN.RUNNING:
        return _running(run, now)
    if run.state == _RUN.HELD:
        return (
            "Read the list of deletions, and confirm it on the run's page if all of them are right."
        )
    if run.state == _RUN.PARKED:
        return (
            "It failed for a fault of the portal, not of the cluster. Nothing is retried "
            "automatically: look for the run's ID in the worker's log, then synchronize again."
        )
    return _ended(run, sync_state, now)


def _waiting(run: SyncRun, sync_state: SyncState | None, now: dt.datetime) -> str:
    connection = connection_of(run.cluster)
    if connection is None:
        return "The cluster is no longer connected."
    if connection.is_paused:
        return f"The sync is {description(connection)}. The run begins when a person resumes it."
    if sync_state and sync_state.lease_until and sync_state.lease_until > now:
        return "Another run over this cluster goes on; this one begins as soon as that has ended."
    if run.attempt and sync_state and sync_state.due and sync_state.due > now:
        return f"It begins again automatically {_at(sync_state.due, now)}."
    if now - run.created > PATIENCE:
        return (
            "No worker has taken it. Check that the worker and beat are running: both are "
            "started by make run, and by the compose file as services."
        )
    return ""


def _running(run: SyncRun, now: dt.datetime) -> str:
    if run.heartbeat is None or now - run.heartbeat < PATIENCE:
        return ""
    return (
        f"No sign of life since {run.heartbeat:%H:%M:%S} UTC: its worker may be gone. After "
        f"{LEASE:.0f} s another one takes it up and goes on where it stopped, as long as there is "
        "one: check that a worker is running."
    )


def _ended(run: SyncRun, state: SyncState | None, now: dt.datetime) -> str:
    if run.state == _RUN.DONE:
        return _left_undone(run)
    if state and state.last_success and state.last_success > (run.finished or run.created):
        return "The cluster was synchronized since: there is nothing to do."
    connection = connection_of(run.cluster)
    if connection is None:
        return "The cluster is no longer connected."
    if connection.state in STOPPED:
        return connection_hint(connection)
    if connection.is_paused:
        return f"The sync is {description(connection)}."
    retry_words = _at(state.due, now) if state and state.due else ""
    return f"It is retried automatically {retry_words}." if retry_words else ""


def connection_hint(connection: ClusterConnection | None) -> str:
    """The meaning and the cure of a connection's state; empty if it works."""
    return CONNECTION_HINTS.get(_CONNECTION(connection.state), "") if connection else ""


def _left_undone(run: SyncRun) -> str:
    run_counts = run.counts if isinstance(run.counts, dict) else {}
    if run_counts.get("failed"):
        return (
            "The objects that could not be written are below, with the API server's messages. The "
            "next attempt follows in a minute."
        )
    if run_counts.get("conflict"):
        return "Both sides were changed: a person has to resolve each conflict."
    return ""


def connection_of(cluster: Cluster) -> ClusterConnection | None:
    """Read the cluster's connection; the one cached on the instance may be stale."""
    return ClusterConnection.objects.filter(cluster=cluster).first()


def _at(due_at: dt.datetime, now: dt.datetime) -> str:
    # A time and not a duration: the text must not change with each refresh of a page.
    return f"at {due_at:%H:%M:%S} UTC" if due_at > now else "now, as soon as a worker is free"
