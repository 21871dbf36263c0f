"""Advice about a run fits its state, its cluster and its worker."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from policies.db.clock import read_clock
from sync.models import ClusterConnection, SyncRun, SyncState
from sync.passes.advice import CONNECTION_HINTS, advice
from sync.runs import pause
from tests.sync.pass_setup import connected

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


def ago(seconds: float) -> dt.datetime:
    return read_clock() - dt.timedelta(seconds=seconds)


def run_of(cluster: Cluster, state: str, **fields: Any) -> SyncRun:
    run = SyncRun.objects.create(cluster=cluster, mode="sync", trigger="person", state=state)
    SyncRun.objects.filter(pk=run.pk).update(**fields)
    run.refresh_from_db()
    return run


def timetable(cluster: Cluster, **fields: Any) -> None:
    SyncState.objects.update_or_create(cluster=cluster, defaults=fields)


@pytest.mark.parametrize(
    ("state", "fields", "times", "expected"),
    [
        ("waiting", dict, dict, ""),
        ("waiting", lambda: {"created": ago(60)}, dict, "No worker has taken it"),
        ("waiting", dict, lambda: {"lease_until": ago(-9)}, "Another run over this cluster"),
        ("waiting", lambda: {"attempt": 1}, lambda: {"due": ago(-99)}, "again automatically at "),
        ("running", lambda: {"heartbeat": ago(1)}, dict, ""),
        ("running", lambda: {"heartbeat": ago(30)}, dict, "No sign of life since"),
        ("held", dict, dict, "confirm it"),
        ("parked", dict, dict, "worker's log"),
        ("done", dict, dict, ""),
        ("done", lambda: {"counts": {"failed": 1}}, dict, "next attempt follows in a minute"),
        ("done", lambda: {"counts": {"conflict": 1}}, dict, "has to resolve"),
        ("failed", lambda: {"finished": ago(9)}, lambda: {"due": ago(-99)}, "automatically at "),
        ("failed", lambda: {"finished": ago(9)}, lambda: {"due": ago(9)}, "automatically now"),
        ("failed", lambda: {"finished": ago(9)}, lambda: {"last_success": ago(1)}, "since: there"),
        ("failed", dict, dict, ""),
    ],
)
def test_advice_fits(
    state: str,
    fields: Callable[[], dict[str, Any]],
    times: Callable[[], dict[str, Any]],
    expected: str,
) -> None:
    cluster = connected()
    timetable(cluster, **times())
    found = advice(run_of(cluster, state, **fields()))
    assert (expected in found) if expected else found == ""


@pytest.mark.parametrize("state", ["unauthorized", "forbidden", "untrusted"])
def test_a_cluster_that_stopped_needs_a_person(state: str) -> None:
    cluster = connected()
    ClusterConnection.objects.update(state=state)
    run = run_of(cluster, "failed", finished=ago(9))
    assert advice(run) == CONNECTION_HINTS[ClusterConnection.State(state)]
    assert "Nothing is retried automatically" in advice(run).replace("\n", " ")


@pytest.mark.parametrize("state", ["waiting", "failed"])
def test_advice_names_a_pause_and_a_lost_connection(state: str) -> None:
    cluster = connected()
    run = run_of(cluster, state, finished=ago(9))
    pause.pause(cluster, user="ada", reason="an upgrade")
    assert "by ada: an upgrade" in advice(run)
    ClusterConnection.objects.all().delete()
    assert "no longer connected" in advice(run)
