"""Who meets a mark waits until the write is past: 0.3 s at most, and 64 at once in a process."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from admission.api import respond, waits
from admission.decide import Call
from engine.request import Phase
from policies import services, snapshot
from policies.snapshot import marks
from policies.snapshot.marks import Place
from tests.admission.api.test_endpoint_metrics import count
from tests.reviews import SEED_LIMITS, new_pod, review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from admission.api.respond import PreparedReview
    from policies.models import Cluster

pytestmark = pytest.mark.django_db
OUTCOMES = ("waited", "gave-up", "too-many")


class ControlledLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only when the test says so."""

    now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def prepared(cluster: Cluster, secret: str) -> Callable[..., PreparedReview]:
    """Prepare the review of a pod."""
    snapshot.refresh()

    def make(namespace: str = "ns", *, budget: float = 9.0) -> PreparedReview:
        body = json.dumps(review(new_pod(namespace=namespace), namespace=namespace)).encode()
        call = Call(
            cluster="demo",
            phase=Phase.VALIDATE,
            client="",
            secret=secret,
            started=time.monotonic_ns(),
            budget=budget,
        )
        return respond.prepare(lambda: body, call=call)

    return make


@pytest.fixture
def counted() -> Iterator[Callable[[], dict[str, int]]]:
    """Counts of outcomes since the test began."""

    def read() -> dict[str, int]:
        found = {each: count("gatehouse_admission_waits_total", outcome=each) for each in OUTCOMES}
        return {each: int(found[each] - before.get(each, 0)) for each in OUTCOMES}

    before: dict[str, int] = {}
    before = read()
    return read


def outcomes(**counts: int) -> dict[str, int]:
    return {"waited": 0, "gave-up": 0, "too-many": 0} | {
        name.replace("_", "-"): number for name, number in counts.items()
    }


def in_loop(play: Callable[[ControlledLoop], Any]) -> None:
    """Run a coroutine function in a loop of controlled time."""
    loop = ControlledLoop()
    try:
        loop.run_until_complete(play(loop))
    finally:
        loop.close()


async def turns() -> None:
    """Let the loop do all that it can do now."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_review_gives_up_after_300_milliseconds(
    cluster: Cluster, prepared: Callable[..., PreparedReview], counted: Callable[[], dict[str, int]]
) -> None:
    async def play(loop: ControlledLoop) -> None:
        marks.present.add(Place(cluster.pk, "ns"), 1)
        waiting = loop.create_task(waits.wait_in_loop(prepared()))
        await turns()
        loop.now += 0.29
        await turns()
        assert not waiting.done()
        loop.now += 0.02
        await turns()
        assert waiting.done()

    in_loop(play)
    assert counted() == outcomes(gave_up=1)


def test_review_waits_no_longer_than_its_caller(
    cluster: Cluster, prepared: Callable[..., PreparedReview], counted: Callable[[], dict[str, int]]
) -> None:
    async def play(loop: ControlledLoop) -> None:
        marks.present.add(Place(cluster.pk, "ns"), 1)
        await waits.wait_in_loop(prepared(budget=0.0))

    in_loop(play)
    assert counted() == outcomes()


def test_review_goes_on_once_the_write_is_past(
    cluster: Cluster, prepared: Callable[..., PreparedReview], counted: Callable[[], dict[str, int]]
) -> None:
    async def play(loop: ControlledLoop) -> None:
        marks.present.add(Place(cluster.pk, "ns"), 1)
        waiting = loop.create_task(waits.wait_in_loop(prepared()))
        await turns()
        past = threading.Thread(target=marks.present.remove, args=([1],))
        past.start()
        past.join()
        await waiting

    in_loop(play)
    assert counted() == outcomes(waited=1)


def test_other_namespaces_do_not_wait(
    cluster: Cluster, prepared: Callable[..., PreparedReview], counted: Callable[[], dict[str, int]]
) -> None:
    async def play(_loop: ControlledLoop) -> None:
        marks.present.add(Place(cluster.pk, "ns"), 1)
        await waits.wait_in_loop(prepared("other"))

    in_loop(play)
    waits.wait_in_thread(prepared("other"))
    assert counted() == outcomes()


def test_no_more_than_64_wait_at_once(
    cluster: Cluster, prepared: Callable[..., PreparedReview], counted: Callable[[], dict[str, int]]
) -> None:
    async def play(loop: ControlledLoop) -> None:
        marks.present.add(Place(cluster.pk, "ns"), 1)
        waiting = [loop.create_task(waits.wait_in_loop(prepared())) for _ in range(70)]
        await turns()
        assert [task.done() for task in waiting] == [False] * 64 + [True] * 6
        assert counted() == outcomes(too_many=6)
        waits.wait_in_thread(prepared())  # threads and loops have the same room
        assert counted() == outcomes(too_many=7)
        marks.present.remove([1])
        await asyncio.gather(*waiting)

    in_loop(play)
    assert counted() == outcomes(waited=64, too_many=7)


def test_only_a_quarter_of_the_threads_may_wait(
    cluster: Cluster,
    prepared: Callable[..., PreparedReview],
    counted: Callable[[], dict[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits, "LONGEST", 60.0)
    monkeypatch.setattr(marks, "SECONDS", 60.0)
    marks.present.add(Place(cluster.pk, "ns"), 1)
    reviews = [prepared() for _ in range(5)]
    threads = [
        threading.Thread(target=waits.wait_in_thread, args=(waiting,)) for waiting in reviews[:4]
    ]
    for thread in threads:
        thread.start()
    while waits._room_in_threads._value:
        time.sleep(0.001)
    waits.wait_in_thread(reviews[4])
    assert counted() == outcomes(too_many=1)
    marks.present.remove([1])
    for thread in threads:
        thread.join()
    assert counted() == outcomes(waited=4, too_many=1)


def test_room_of_a_caller_that_went_is_free_again(
    cluster: Cluster, prepared: Callable[..., PreparedReview], counted: Callable[[], dict[str, int]]
) -> None:
    async def play(loop: ControlledLoop) -> None:
        marks.present.add(Place(cluster.pk, "ns"), 1)
        for _ in range(2):
            waiting = [loop.create_task(waits.wait_in_loop(prepared())) for _ in range(64)]
            await turns()
            for task in waiting:
                task.cancel()
            await turns()

    in_loop(play)
    assert counted() == outcomes()


def test_thread_gives_up(
    cluster: Cluster,
    prepared: Callable[..., PreparedReview],
    counted: Callable[[], dict[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits, "LONGEST", 0.01)
    marks.present.add(Place(cluster.pk, "ns"), 1)
    waits.wait_in_thread(prepared())
    assert counted() == outcomes(gave_up=1)


def test_thread_goes_on_with_the_new_policies(
    cluster: Cluster,
    prepared: Callable[..., PreparedReview],
    counted: Callable[[], dict[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits, "LONGEST", 60.0)
    monkeypatch.setattr(marks, "SECONDS", 60.0)
    marks.present.add(Place(cluster.pk, "ns"), 1)
    waiting = prepared()
    before = waiting.item.stamp
    services.apply_manifest(
        cluster=cluster, manifest=SEED_LIMITS, user="root", create_namespace=True
    )
    snapshot.refresh()
    past = threading.Timer(0.01, marks.present.remove, args=([1],))
    past.start()
    waits.wait_in_thread(waiting)
    past.join()
    assert counted() == outcomes(waited=1)
    assert before is not None
    assert waiting.item.stamp == (*before[:2], snapshot.revision("demo"))
