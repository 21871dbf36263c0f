"""The Snapshot that a process holds, its Refresher thread, LISTEN notices, frozen collector.

The thread refreshes after the database's notifications, else each second, and keeps the marks of
writes under way. Correctness does not depend on it: decisions compare revisions when they commit,
and the thread only makes them equal.
"""

from __future__ import annotations

import gc
import logging
import select
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import Error, connection

from policies.db.deferred import driver_parameters
from policies.snapshot import announcements, followed, marks
from policies.snapshot.build import advance
from policies.snapshot.revisions import CHANNEL
from policies.snapshot.values import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FREEZE_FROM: Final = 1000
"""With so many new namespaces the garbage collector is made to ignore them."""


class _Holder:
    """Holds the snapshot; callers that wait for a running ``refresh`` share the next one."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._refresh_lock = threading.Lock()
        self._refreshes_begun = 0
        self._refreshes_done = 0

    def refresh(self) -> Snapshot:
        """Read the database, unless a refresh that began after this call has done so already."""
        # The running refresh may have read before our caller's commit: only a later one will do.
        wanted_refresh = self._refreshes_begun + 1
        with self._refresh_lock:
            known = self.snapshot
            if known is not None and self._refreshes_done >= wanted_refresh:
                return known
            self._refreshes_begun += 1
            refresh_number = self._refreshes_begun
            with _collector_at_rest():
                fresh = advance(known or Snapshot())
            self.snapshot, self._refreshes_done = fresh, refresh_number
        if (
            fresh is not known
            and _namespace_count(fresh) - _namespace_count(known or Snapshot()) >= FREEZE_FROM
        ):
            # The values stay for as long as the process: collections would walk them for nothing.
            gc.collect()
            gc.freeze()
        return fresh


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Disable the collector: it would walk all new values again and again, and free none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _namespace_count(snapshot: Snapshot) -> int:
    return sum(len(cluster.namespaces) for cluster in snapshot.clusters.values())


_holder = _Holder()


def current() -> Snapshot:
    """The present snapshot, built at the first call on the caller's connection."""
    return _holder.snapshot or refresh()


def known() -> Snapshot | None:
    """The present snapshot, without the database; None before the first one."""
    return _holder.snapshot


def refresh() -> Snapshot:
    """A snapshot of all that was committed before this call; one query if nothing changed.

    Must not run inside a transaction that writes policies: it may still be rolled back. Raises the
    database's errors; the last snapshot then stays in use.
    """
    return _holder.refresh()


def forget() -> None:
    """Drop the snapshot, for tests that change the database without revisions."""
    global _holder  # noqa: PLW0603 - the one state of the process
    _holder = _Holder()
    marks.present.clear()
    followed.forget_looks()


POLL_SECONDS: Final = 1.0
MARKED_POLL_SECONDS: Final = 0.05
"""While a write is under way, where the database does not notify."""
LONGEST_PAUSE_SECONDS: Final = 10.0
STOP_SECONDS: Final = 2.0
logger = logging.getLogger(__name__)


class Refresher(threading.Thread):
    """Calls ``refresh`` until ``end``; an error of the database only delays the next call."""

    def __init__(self, refresh: Callable[[], object] = refresh) -> None:
        super().__init__(name="policy-refresher", daemon=True)
        self._refresh = refresh
        self._ended = threading.Event()
        self._failures = 0

    def end(self) -> None:
        """Make ``run`` return within a second."""
        self._ended.set()
        marks.present.added.set()  # which ``_poll`` waits for

    def run(self) -> None:
        """Refresh until ``end`` is called; without a database the last snapshot stays in use."""
        while not self._ended.is_set():
            try:
                with _notices() as wait_for_notice:
                    self._keep_fresh(wait_for_notice)
            except Error as error:
                if not self._failures:
                    logger.warning(
                        "policies cannot be refreshed, the last ones stay in use: %s", error
                    )
                self._failures += 1
                # Exponential backoff.
                pause_seconds = min(LONGEST_PAUSE_SECONDS, 0.25 * 2 ** min(self._failures, 10))
                self._ended.wait(pause_seconds)

    def _keep_fresh(self, wait_for_notice: Callable[[float], object] | None) -> None:
        reads_writes = True  # once, where notices tell of later ones
        while not self._ended.is_set():
            try:
                writes = announcements.read_under_way() if reads_writes else None
                self._refresh()
                announcements.catch_up(known(), writes)
            finally:
                # Held only while it is used: many processes share few connections.
                connection.close()
            if self._failures:
                logger.info("policies are refreshed again")
            self._failures = 0
            reads_writes = wait_for_notice is None
            (wait_for_notice or self._poll)(POLL_SECONDS)

    def _poll(self, seconds: float) -> None:
        """Wait so many seconds, or less for the first mark and while there is one."""
        marks.present.added.clear()
        if self._ended.is_set() or marks.present:
            self._ended.wait(MARKED_POLL_SECONDS)
        else:
            marks.present.added.wait(seconds)


@contextmanager
def _notices() -> Iterator[Callable[[float], object] | None]:
    """Listen to the database on a connection of our own, where it can notify.

    Yields a function that waits so many seconds, or until a notice comes, and has ``announcements``
    hear those that it is for; None on SQLite.
    """
    if connection.vendor != "postgresql":
        yield None
        return
    import psycopg  # noqa: PLC0415 - only there where PostgreSQL is

    try:
        with psycopg.connect(**driver_parameters(), autocommit=True) as listening:
            for channel in (announcements.CHANNEL, CHANNEL):
                listening.execute(f"LISTEN {channel}")
            notice_socket = select.poll()
            notice_socket.register(listening.fileno(), select.POLLIN)

            def wait(seconds: float) -> None:
                # The driver's own wait wakes up ten times a second.
                if notice_socket.poll(seconds * 1000):
                    for notice in listening.notifies(timeout=0):
                        if notice.channel == announcements.CHANNEL:
                            announcements.hear(notice.payload)

            yield wait
    except psycopg.Error as error:
        raise Error(str(error)) from error


_refresher_lock = threading.Lock()
_refresher: Refresher | None = None


def start() -> None:
    """Start the thread; once is enough."""
    global _refresher  # noqa: PLW0603 - the one thread of the process
    with _refresher_lock:
        if _refresher is None or not _refresher.is_alive():
            _refresher = Refresher()
            _refresher.start()


def stop() -> None:
    """End the thread, and wait for it."""
    global _refresher
    with _refresher_lock:
        ending_refresher, _refresher = _refresher, None
    if ending_refresher is not None:
        ending_refresher.end()
        ending_refresher.join(timeout=STOP_SECONDS)
