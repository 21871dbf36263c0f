"""A worker killed at any call to the cluster: the next one ends where an unbroken run ends."""

from __future__ import annotations

import pytest

from policies.db.clock import read_clock
from sync.models import SyncResult, SyncRun, SyncState
from sync.passes import full_pass, lifecycle
from sync.runs import leases
from sync.values import ObjectKey
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, serve, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.no_cover]
CALLS = 12
NAMES = ("changed", "dropped", "made", "theirs")


class Killed(BaseException):
    """The process is gone: what it had not committed never was."""


def kill() -> None:
    raise Killed


def prepared() -> Memory:
    """Our side has an edit, a deletion and a new object to write; theirs a new one to take in."""
    memory = Memory("team")
    for name in ("changed", "dropped", "stays"):
        memory.put(quota({"pods": "1"}, name=name))
    cluster = connected()
    run = SyncRun.objects.create(cluster=cluster, mode="sync", trigger="person", state="running")
    with leases.hold(cluster, 60) as lease:
        full_pass.full_pass(cluster, memory, run, lease)  # type: ignore[arg-type]
    SyncRun.objects.all().delete()
    own(cluster)
    edit({"pods": "2"}, name="changed")
    edit({"pods": "3"}, name="made")
    factories.namespace().resourcequotas.get(name="dropped").delete()
    memory.put(quota({"pods": "4"}, name="theirs"))
    return memory


def both_sides(memory: Memory) -> dict[str, tuple[object, object]]:
    keys = {name: ObjectKey("ResourceQuota", "team", name) for name in NAMES}
    theirs = {name: memory.objects.get(key, {}).get("spec") for name, key in keys.items()}
    return {name: (stored(name), theirs[name]) for name in NAMES}


@pytest.mark.sampled
@pytest.mark.parametrize("call", range(1, CALLS))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_run_is_finished_by_the_next_worker(
    call: int, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    memory = prepared()
    serve(monkeypatch, memory)
    run = lifecycle.request(connected(), mode="sync", trigger="person")
    memory.kill_at(len(memory.calls) + call, kill, after=after)
    with pytest.raises(Killed):
        lifecycle.carry_out(run.pk)
    SyncState.objects.update(lease_until=None)
    SyncRun.objects.update(heartbeat=read_clock() - 2 * lifecycle.LOST)
    assert lifecycle.recover_lost() == 1
    assert lifecycle.carry_out(run.pk) == "done"
    assert both_sides(memory) == {
        "changed": ({"hard": {"pods": "2"}}, {"hard": {"pods": "2"}}),
        "dropped": (None, None),
        "made": ({"hard": {"pods": "3"}}, {"hard": {"pods": "3"}}),
        "theirs": ({"hard": {"pods": "4"}}, {"hard": {"pods": "4"}}),
    }
    assert len({what for _, what in memory.done}) == len(memory.done) == 3
    assert not SyncResult.objects.exclude(outcome="done").exists()
