"""A review waits: for writes under way in its namespace, before a refusal for a moment for room.

In a thread or in a loop, at most ``LONGEST`` seconds, and ``MOST`` reviews at once in a process,
few of them in threads. The others go on by what is known. Callers ask ``marks.present`` first:
hardly any review meets a mark.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from django.conf import settings

from admission import metrics
from admission.decide import PostponedError, prepare_after_pause, submit_and_wait
from policies import snapshot
from policies.snapshot import marks
from policies.snapshot.marks import Place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from admission.api.respond import PreparedReview
    from admission.decide import RecordedDecision
    from admission.writer import PendingDecision

LONGEST: Final = 0.3
"""Seconds."""
PAUSES: Final = (0.05, 0.25)
"""Seconds before a refusal for want of room is decided again, and before it is final."""
MOST: Final = 64
_room: Final = threading.BoundedSemaphore(MOST)
# Pages have the same threads: reviews of one namespace must not hold up everybody else.
_room_in_threads: Final = threading.BoundedSemaphore(max(settings.GATEHOUSE_WEB_THREADS // 4, 1))


def wait_in_thread(review: PreparedReview) -> None:
    """Wait in this thread, then prepare the review again. Raises as ``decide.prepare``."""
    is_past = threading.Event()
    with _wait(review, is_past.set, _room_in_threads, _room) as seconds:
        if not seconds:
            return
        _count(is_past=is_past.wait(seconds))
    prepare_again(review)


async def wait_in_loop(review: PreparedReview) -> None:
    """Wait without blocking the loop, then prepare the review again; raises the same."""
    loop = asyncio.get_running_loop()
    is_past = asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(is_past.set)

    with _wait(review, tell, _room) as seconds:
        if not seconds:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await is_past.wait()
        _count(is_past=is_past.is_set())
    prepare_again(review)


def decide_in_thread(item: PendingDecision) -> RecordedDecision:
    """Submit a review and wait for its decision, in this thread; pause where it is postponed."""
    for seconds in PAUSES:
        try:
            return submit_and_wait(item)
        except PostponedError:
            with _entered(_room_in_threads, _room) as is_in:
                _count_pause(is_in=is_in)
                time.sleep(seconds if is_in else 0.0)
            item = prepare_after_pause(item, is_last=not is_in or seconds == PAUSES[-1])
    return submit_and_wait(item)


async def decide_in_loop(
    item: PendingDecision, submit: Callable[[PendingDecision], Awaitable[RecordedDecision]]
) -> RecordedDecision:
    """Do the same without blocking the loop; ``submit`` returns the outcome of an item."""
    for seconds in PAUSES:
        try:
            return await submit(item)
        except PostponedError:
            with _entered(_room) as is_in:
                _count_pause(is_in=is_in)
                await asyncio.sleep(seconds if is_in else 0.0)
            item = prepare_after_pause(item, is_last=not is_in or seconds == PAUSES[-1])
    return await submit(item)


@contextmanager
def _wait(
    review: PreparedReview, tell: Callable[[], None], *rooms: threading.Semaphore
) -> Iterator[float]:
    """Enter the rooms and have ``tell`` called; yields the seconds to wait at most, 0 for none."""
    stamp, call = review.item.stamp, review.call
    place = Place(stamp[0] if stamp else 0, review.namespace)
    with marks.present.watch(place, tell) as mark_seconds:
        seconds = min(LONGEST, mark_seconds, call.budget - call.spent)
        if seconds <= 0:
            yield 0.0
            return
        with _entered(*rooms) as is_in:
            if not is_in:
                metrics.WAITS.labels(outcome="too-many").inc()
            yield seconds if is_in else 0.0


@contextmanager
def _entered(*rooms: threading.Semaphore) -> Iterator[bool]:
    """Whether there is a place in all of these rooms, which is then kept."""
    with ExitStack() as places:
        for room in rooms:
            if not room.acquire(blocking=False):
                yield False
                return
            places.callback(room.release)
        yield True


def _count(*, is_past: bool) -> None:
    metrics.WAITS.labels(outcome="waited" if is_past else "gave-up").inc()


def _count_pause(*, is_in: bool) -> None:
    metrics.WAITS.labels(outcome="for-room" if is_in else "too-many").inc()


def prepare_again(review: PreparedReview) -> None:
    """Prepare a review on the policies that came while it waited, if any did."""
    policies, stamp = snapshot.current(), review.item.stamp
    cluster = policies.clusters.get(review.call.cluster)
    if cluster is None or stamp != (cluster.id, cluster.uid, cluster.revision):
        review.item.prepare(policies)
