"""Killed or duplicate workers and lost broker messages: both sides end up the same."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest
from redis import Redis

from tests import factories
from tests.cluster.background import Background, background, empty_database, kill, redis
from tests.cluster.views import View, Views, views
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.cluster.servers import Cluster as ControlPlane

pytestmark = pytest.mark.cluster
CALLS: Final = 16
"""The calls of a pass over one of these clusters; each of them is the last of some worker."""
WRITES: Final = (12, 13, 14)
"""The writing calls: also the last ones when executed without an answer to the worker."""
_numbers = itertools.count()


def quota(place: str, name: str, **hard: str) -> dict[str, Any]:
    return factories.manifest("ResourceQuota", {"hard": hard}, name=name, namespace=place)


def ask(plane: ControlPlane, method: str, path: str, body: Any = None) -> Any:
    """Call the API server as a client other than the portal."""
    line = plane.connect()
    headers = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
    line.request(method, path, None if body is None else json.dumps(body), headers)
    answer = line.getresponse()
    found = json.loads(answer.read())
    line.close()
    assert answer.status < 300, found
    return found


def put(plane: ControlPlane, place: str, name: str, **hard: str) -> None:
    """Create a quota in the cluster."""
    path = f"/api/v1/namespaces/{place}/resourcequotas?fieldManager=kubectl-create"
    ask(plane, "POST", path, quota(place, name, **hard))


def live(plane: ControlPlane, view: View) -> dict[str, tuple[Any, str]]:
    """The quotas of a view: hard limits, and the version."""
    items = ask(plane, "GET", f"/api/v1/namespaces/{view.name}/resourcequotas")["items"]
    return {
        one["metadata"]["name"]: (one["spec"]["hard"], one["metadata"]["resourceVersion"])
        for one in items
    }


def hard(plane: ControlPlane, view: View) -> dict[str, Any]:
    return {name: amounts for name, (amounts, _) in live(plane, view).items()}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return empty_database(tmp_path_factory.mktemp("database"))


@pytest.fixture
def seen(plain_cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Views]:
    """As many views as the test needs, each with three quotas; removed afterwards."""
    prefix = f"workers-{next(_numbers)}"
    names = [f"{prefix}-{number}" for number in range(request.param)]
    for name in names:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        ask(plain_cluster, "POST", "/api/v1/namespaces", manifest)
        for old in ("changed", "dropped", "stays"):
            put(plain_cluster, name, old, pods="1")
    with views(plain_cluster, names) as made:
        yield made
    for name in names:
        ask(plain_cluster, "DELETE", f"/api/v1/namespaces/{name}")


def edits(place: str) -> Sequence[Any]:
    """Ours: one changed, one new, one deleted."""
    gone = {"kind": "ResourceQuota", "metadata": {"name": "dropped"}}
    return [quota(place, "changed", pods="2"), quota(place, "made", pods="3"), gone]


WANTED: Final = {"changed": {"pods": "2"}, "made": {"pods": "3"}, "stays": {"pods": "1"}}
THEIRS: Final = {"theirs": {"pods": "4"}}
WRITTEN: Final = ["DELETE dropped", "PATCH changed", "PATCH made"]


LOST_RUNS: Final = "SELECT 1 FROM sync_syncrun WHERE state = 'running' AND attempt = 1"


def edit_both(work: Background, seen: Views) -> None:
    """Theirs: one new. Then ours, all at once."""
    for view in seen.all():
        put(seen.plane, view.name, "theirs", pods="4")
    work.edit({view.name: edits(view.name) for view in seen.all()})


def require_same(work: Background, seen: Views) -> None:
    """Require the expected state on both sides of all clusters, each write done once."""
    stored = work.stored()
    for view in seen.all():
        assert stored[view.name] == hard(seen.plane, view) == {**WANTED, **THEIRS}, view.calls
        assert sorted(view.written) == WRITTEN, view.calls
    assert work.ask("SELECT outcome FROM sync_syncresult WHERE outcome != 'done'") == []


def require_steady(work: Background, seen: Views) -> None:
    """Require one more pass to write nothing anywhere."""
    before = [live(seen.plane, view) for view in seen.all()]
    done = work.count("done")
    work.request()
    wait_for(lambda: work.count("done") == done + len(before))
    assert [live(seen.plane, view) for view in seen.all()] == before
    assert all(sorted(view.written) == WRITTEN for view in seen.all())


def hold_each(seen: Views) -> list[View]:
    """Hold each cluster at another call, and one not at all; returns the held ones."""
    free, *held = seen.all()
    for view, call in zip(held, range(1, CALLS + 1), strict=False):
        view.hold(call)
    for view, call in zip(held[CALLS:], WRITES, strict=True):
        view.hold(call, after=True)
    free.hold(0)
    return held


def require_all_calls_held(free: View) -> None:
    """Require that no call of a pass was omitted, nor a write."""
    assert len(free.calls) == CALLS, "\n".join(free.calls)
    wrote = [number for number, call in enumerate(free.calls, 1) if is_write(call)]
    assert tuple(wrote) == WRITES, free.calls


def is_write(call: str) -> bool:
    return not call.startswith("GET") and "dryRun" not in call


@pytest.mark.long
@pytest.mark.parametrize("seen", [1 + CALLS + len(WRITES)], indirect=True)
def test_worker_killed_at_each_call_is_followed_by_one_that_ends_it(
    seen: Views, database: Path, tmp_path: Path
) -> None:
    number = len(seen.all())
    work = background(tmp_path, database, GATEHOUSE_WORKER_TASKS=str(number))
    work.connect(seen)
    with work.start("beat"), work.start("worker") as worker, ExitStack() as later:
        wait_for(lambda: work.count("done", "import") == number)
        held = hold_each(seen)
        edit_both(work, seen)
        wait_for(lambda: work.count("done") == 1 and all(view.held.is_set() for view in held))
        require_all_calls_held(seen.all()[0])
        kill(worker)
        killed = time.monotonic()
        seen.release()
        later.enter_context(work.start("worker", 2))
        wait_for(lambda: not work.ask(LOST_RUNS))
        assert time.monotonic() - killed < 60
        wait_for(lambda: work.count("done") == number)
        require_same(work, seen)
        require_steady(work, seen)


@pytest.fixture(params=["files", "redis"])
def work(database: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Background]:
    """A setup for workers, with either broker."""
    if request.param == "files":
        yield background(tmp_path, database)
        return
    with redis(tmp_path) as address:
        yield background(tmp_path, database, GATEHOUSE_BROKER_URL=address)


def flush(work: Background) -> None:
    """Make the broker lose all messages and subscriptions."""
    if address := work.around.get("GATEHOUSE_BROKER_URL"):
        Redis.from_url(address).flushall()
        return
    for file in (work.folder / "broker" / "queue").iterdir():
        file.unlink(missing_ok=True)


def are_all_wanted(work: Background, seen: Views) -> bool:
    """Whether their side has the expected state everywhere, and ours the new objects there."""
    taken = work.ask("SELECT count(*) FROM policies_resourcequota WHERE name = 'theirs'")
    lives = [hard(seen.plane, view) for view in seen.all()]
    return taken == [(len(lives),)] and all(one == {**WANTED, **THEIRS} for one in lives)


@pytest.mark.long
@pytest.mark.parametrize("seen", [3], indirect=True)
def test_two_workers_two_beats_and_a_flushed_broker_end_like_one_of_each(
    seen: Views, work: Background
) -> None:
    work.connect(seen)
    with ExitStack() as all_of_them:
        for kind, number in itertools.product(("worker", "beat"), (1, 2)):
            all_of_them.enter_context(work.start(kind, number))
        wait_for(lambda: work.count("done", "import") == len(seen.all()))
        flush(work)
        edit_both(work, seen)
        flush(work)
        wait_for(lambda: are_all_wanted(work, seen))
    require_same(work, seen)
    assert [view.most_active for view in seen.all()] == [1] * len(seen.all())
    counted = "SELECT count(*), max(attempt) FROM sync_syncrun WHERE mode = 'import'"
    assert work.ask(counted) == [(len(seen.all()), 1)]
