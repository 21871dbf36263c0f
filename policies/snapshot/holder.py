"""The snapshot of this process: replaced by reference, refreshed by one thread at a time."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from policies.snapshot.build import advance
from policies.snapshot.values import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

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
