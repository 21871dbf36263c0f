"""Between full passes: a watch imports changes, and leaves writes and deletions to a pass."""

from __future__ import annotations

import pytest

from sync.models import SyncCursor, SyncRun, SyncState
from sync.passes import watch as passes_watch
from sync.runs import leases
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, row, stored, sync

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches of moments: this cluster has no more to say than what happened before."""
    monkeypatch.setattr(passes_watch, "SLICE", 0.02)


def known() -> Memory:
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    sync(memory)
    return memory


def watch(memory: Memory) -> SyncRun:
    """Watch each kind, more than once."""
    cluster = connected()
    run = SyncRun.objects.create(cluster=cluster, mode="watch", state="running", trigger="watch")
    with leases.hold(cluster, 60) as lease:
        passes_watch.watch_for(cluster, memory, run, lease, 0.2)  # type: ignore[arg-type]
    return run


def is_full_pass_due() -> bool:
    return SyncState.objects.get().last_full_pass is None


def test_change_of_what_is_not_owned_is_taken_in_at_once() -> None:
    memory = known()
    memory.put(quota({"pods": "6"}))
    assert watch(memory).counts == {"import": 1}
    assert stored() == {"hard": {"pods": "6"}}
    assert not is_full_pass_due()


def test_watch_goes_on_from_where_it_was() -> None:
    memory = known()
    memory.put(quota({"pods": "6"}))
    watch(memory)
    before = SyncCursor.objects.get(kind="ResourceQuota").resource_version
    assert watch(memory).counts == {}
    assert SyncCursor.objects.get(kind="ResourceQuota").resource_version == before


def test_our_own_write_makes_no_pass_due() -> None:
    memory = known()
    memory.put(quota({"pods": "6"}))
    watch(memory)
    state = SyncState.objects.select_related("cluster").get()
    assert state.policy_revision == state.cluster.policy_revision


def test_drift_is_seen_and_nothing_written() -> None:
    memory = known()
    own(connected())
    sync(memory)
    memory.put(quota({"pods": "9"}))
    watch(memory)
    assert (row().state, stored(), memory.writes) == ("drifted", {"hard": {"pods": "5"}}, [])


def test_conflict_is_put_on_record_once() -> None:
    memory = known()
    own(connected())
    edit({"pods": "7"})
    SyncState.objects.update(policy_revision=connected().policy_revision)
    memory.put(quota({"pods": "9"}))
    assert watch(memory).counts == {"conflict": 1}
    assert row().state == "conflict"


def test_deletion_waits_for_a_complete_list() -> None:
    memory = known()
    memory.remove("ResourceQuota", "rq")
    watch(memory)
    assert stored()
    assert is_full_pass_due()


def test_version_too_old_asks_for_a_full_pass() -> None:
    memory = known()
    memory.expired = True
    watch(memory)
    assert is_full_pass_due()


def test_watch_gives_way_to_a_run_that_waits() -> None:
    memory = known()
    SyncRun.objects.create(cluster=connected(), mode="sync", state="waiting", trigger="person")
    asked = len(memory.calls)
    watch(memory)
    assert len(memory.calls) == asked


def test_server_that_hangs_up_at_once_is_not_asked_in_a_loop() -> None:
    memory = known()
    asked = len(memory.calls)
    watch(memory)
    assert 5 <= len(memory.calls) - asked <= 20  # each kind once, where time is short


def test_watch_ends_when_its_worker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = known()
    monkeypatch.setattr(passes_watch, "stop_flag", bytearray(1))
    passes_watch.stop()
    asked = len(memory.calls)
    watch(memory)
    assert len(memory.calls) == asked
