"""The thread that refreshes: it notices writes, survives a lost database, and ends on demand."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection, transaction

from policies import services, snapshot
from policies.snapshot import holder
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
POD = {"type": "Pod", "max": {"cpu": "1"}}
PATIENCE_SECONDS = 20
postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite does not notify")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The thread, which on PostgreSQL would sleep through the test without notices."""
    polls = connection.vendor != "postgresql"
    monkeypatch.setattr(holder, "POLL_SECONDS", 0.02 if polls else 4 * PATIENCE_SECONDS)
    snapshot.start()
    yield
    monkeypatch.setattr(holder, "POLL_SECONDS", 0.02)
    with services.policy_write(factories.cluster("last")):
        factories.namespace(in_cluster="last")
    snapshot.stop()


def eventually(is_so: Callable[[], bool]) -> bool:
    """Whether the condition holds before the patience ends."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def has_range(name: str) -> bool:
    known = snapshot.current().clusters.get("prod")
    return known is not None and name in {p.name for p in known.policy_set("team").limit_ranges}


def alive() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "policy-refresher"]


@pytest.mark.usefixtures("started")
def test_a_write_is_noticed() -> None:
    for name in ("first", "second"):
        factories.limit_range(POD, name=name)
        assert eventually(lambda name=name: has_range(name))  # type: ignore[misc]


@postgres
@pytest.mark.usefixtures("started")
def test_a_lost_connection_is_made_again() -> None:
    factories.limit_range(POD, name="first")
    assert eventually(lambda: has_range("first"))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        )
    factories.limit_range(POD, name="second")
    assert eventually(lambda: has_range("second"))


@pytest.mark.usefixtures("started")
def test_it_is_started_once() -> None:
    snapshot.start()
    assert len(alive()) == 1


def test_it_ends_on_demand() -> None:
    snapshot.start()
    snapshot.stop()
    snapshot.stop()
    assert not alive()


def test_an_outage_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[None] = []

    def fail() -> None:
        tries.append(None)
        if len(tries) == 3:
            thread.end()
        raise OperationalError("gone")

    monkeypatch.setattr(holder, "LONGEST_PAUSE_SECONDS", 0.01)
    thread = holder.Refresher(refresh=fail)
    with caplog.at_level(logging.WARNING, logger=holder.logger.name):
        thread.start()
        thread.join(timeout=PATIENCE_SECONDS)
    assert len(tries) == 3
    assert len(caplog.records) == 1


@postgres
def test_a_policy_write_commits_behind_decisions() -> None:
    cluster = factories.cluster()
    revisions: list[int] = []

    def write() -> None:
        factories.limit_range(POD)
        revisions.append(snapshot.revision("prod"))
        connection.close()

    writer = threading.Thread(target=write)
    with transaction.atomic():
        snapshot.lock_revisions([cluster.pk])
        writer.start()
        writer.join(timeout=0.5)
        assert revisions == []
        assert snapshot.revision("prod") == 1
    writer.join()
    assert revisions == [2]


@postgres
def test_policy_writes_are_not_starved_by_decisions() -> None:
    cluster, ended = factories.cluster(), threading.Event()

    def decide() -> None:
        while not ended.is_set():
            with transaction.atomic():
                snapshot.lock_revisions([cluster.pk])
                time.sleep(0.005)
        connection.close()

    threads = [threading.Thread(target=decide) for _ in range(6)]
    for thread in threads:
        thread.start()
    for number in range(5):
        factories.limit_range(POD, name=f"r{number}")  # would run into the lock's timeout
    ended.set()
    for thread in threads:
        thread.join()
    assert snapshot.revision("prod") == 6
