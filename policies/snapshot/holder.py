"""The snapshot of this process: its holder, and the thread that refreshes it.

The thread refreshes after the database's notifications, else each second. Correctness does not
depend on it: decisions compare revisions when they commit, and the thread only makes them equal.
"""

from __future__ import annotations

import gc
import logging
import select
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.db import Error, connection

from policies.snapshot.build import advance
from policies.snapshot.revisions import CHANNEL
from policies.snapshot.values import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FREEZE_FROM: Final = 1000
"""From so many new namespaces on, the garbage collector ignores them: it would walk them."""


class _Holder:
    """Holds the snapshot; ``refresh`` is shared by all who ask while one runs."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._running = threading.Lock()
        self._begun = 0
        self._done = 0

    def refresh(self) -> Snapshot:
        """Ask the database, unless somebody who began after our call has asked already."""
        wanted = self._begun + 1
        with self._running:
            known = self.snapshot
            if known is not None and self._done >= wanted:
                return known
            self._begun += 1
            number = self._begun
            with _collector_at_rest():
                fresh = advance(known or Snapshot())
            self.snapshot, self._done = fresh, number
        if fresh is not known and _size(fresh) - _size(known or Snapshot()) >= FREEZE_FROM:
            gc.collect()
            gc.freeze()
        return fresh


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep the collector from walking, again and again, what is only being built and stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _size(snapshot: Snapshot) -> int:
    return sum(len(cluster.namespaces) for cluster in snapshot.clusters.values())


_holder = _Holder()


def current() -> Snapshot:
    """Give the snapshot as it is, built at the first call on the caller's connection."""
    return _holder.snapshot or refresh()


def known() -> Snapshot | None:
    """Give the snapshot as it is, without asking the database; None before the first one."""
    return _holder.snapshot


def refresh() -> Snapshot:
    """Give a snapshot of all that was committed before this call; one query if nothing changed.

    Must not run inside a transaction that writes policies: those may still be taken back. Raises
    what the database raises; the last snapshot stays in use then.
    """
    return _holder.refresh()


def forget() -> None:
    """Begin anew at the next call, as tests must that leave another database behind."""
    global _holder  # noqa: PLW0603 - the one state of the process
    _holder = _Holder()


POLL_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 10.0
STOP_SECONDS: Final = 2.0
logger = logging.getLogger(__name__)


class _Refresher(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="policy-refresher", daemon=True)
        self._ended = threading.Event()
        self._failures = 0

    def end(self) -> None:
        """Return from ``run`` within a second."""
        self._ended.set()

    def run(self) -> None:
        """Refresh until it is asked to end; without a database the last snapshot stays in use."""
        while not self._ended.is_set():
            try:
                with _notices() as wait:
                    self._keep_fresh(wait or self._ended.wait)
            except Error as error:
                self._pause(error)

    def _keep_fresh(self, wait: Callable[[float], object]) -> None:
        while not self._ended.is_set():
            try:
                refresh()
            finally:
                connection.close()
            if self._failures:
                logger.info("policies are refreshed again")
            self._failures = 0
            wait(POLL_SECONDS)

    def _pause(self, error: Error) -> None:
        if not self._failures:
            logger.warning("policies cannot be refreshed, the last ones stay in use: %s", error)
        self._failures += 1
        self._ended.wait(min(LONGEST_PAUSE_SECONDS, 0.25 * 2 ** min(self._failures, 10)))


@contextmanager
def _notices() -> Iterator[Callable[[float], object] | None]:
    """Listen to the database on a connection of our own, where it can notify.

    Gives a function that waits so many seconds, less if a notice comes; None on SQLite.
    """
    if connection.vendor != "postgresql":
        yield None
        return
    import psycopg  # noqa: PLC0415 - only there where PostgreSQL is

    try:
        with psycopg.connect(**_parameters(), autocommit=True) as listening:
            listening.execute(f"LISTEN {CHANNEL}")
            socket = select.poll()
            socket.register(listening.fileno(), select.POLLIN)

            def wait(seconds: float) -> None:
                # The driver itself would look up ten times a second while it waits.
                if socket.poll(seconds * 1000):
                    list(listening.notifies(timeout=0))

            yield wait
    except psycopg.Error as error:
        raise Error(str(error)) from error


def _parameters() -> dict[str, Any]:
    """Reach the same database as Django does, with plain values."""
    known = connection.get_connection_params()
    return {
        name: value for name, value in known.items() if name not in {"context", "cursor_factory"}
    }


_lock = threading.Lock()
_refresher: _Refresher | None = None


def start() -> None:
    """Start the thread; once is enough."""
    global _refresher  # noqa: PLW0603 - the one thread of the process
    with _lock:
        if _refresher is None or not _refresher.is_alive():
            _refresher = _Refresher()
            _refresher.start()


def stop() -> None:
    """End the thread, and wait until it has."""
    global _refresher
    with _lock:
        ending, _refresher = _refresher, None
    if ending is not None:
        ending.end()
        ending.join(timeout=STOP_SECONDS)
