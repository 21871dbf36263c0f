"""SessionLine: a session in the event loop; its socket, and a batch whose waits block nothing.

PostgreSQL only: SQLite has no socket to wait for.
"""

from __future__ import annotations

import contextlib
import select
from typing import TYPE_CHECKING

from psycopg import OperationalError
from psycopg.pq import ConnStatus, TransactionStatus

from admission.writer.batch import ERRORS, BatchOutcome, FailedBatch, begin, finish, steps
from admission.writer.failpoints import hit
from policies.db.deferred import transaction_in_loop

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable

    from admission.writer.pending_decision import PendingDecision
    from admission.writer.session import Opened


class SessionLine:
    """One session; ``lose`` is called once the server has ended it between two batches."""

    def __init__(self, loop: AbstractEventLoop, opened: Opened, lose: Callable[[], None]) -> None:
        self.connection, self.mark = opened.take(), opened.mark
        self._loop = loop
        self._lose = lose
        self._prepared: set[str] = set()  # statements that the session knows
        self._awaited: Future[None] | None = None
        self._descriptor = self.connection.pgconn.socket
        loop.add_reader(self._descriptor, self._on_socket_ready)

    @property
    def is_usable(self) -> bool:
        """Whether the session can begin another transaction."""
        pgconn = self.connection.pgconn
        is_between_batches = pgconn.transaction_status == TransactionStatus.IDLE
        return bool(pgconn.status == ConnStatus.OK and is_between_batches)

    async def try_once(
        self, batch: list[PendingDecision], *, waits: bool
    ) -> BatchOutcome | FailedBatch:
        """Do as ``batch.try_once``, without waiting for anything but the socket."""
        attempt = begin(batch, waits=waits)
        if not attempt.batch:
            return BatchOutcome(is_reachable=True)
        attempt.mark = self.mark
        try:
            async with transaction_in_loop(
                self.connection, self._prepared, self._ready
            ) as answered:
                for _ in steps(attempt):
                    await answered()
            hit("after-commit")
        except ERRORS as error:
            return FailedBatch(attempt, error)
        return finish(attempt)

    def close(self) -> None:
        """Close the connection; a batch that waits for it fails."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.remove_reader(self._descriptor)
        self.connection.close()
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(OperationalError("the session was closed"))

    async def _ready(self, events: int) -> None:
        """Wait until the socket is ready for these events; raises OperationalError once closed."""
        is_sending = events & select.POLLOUT
        if is_sending:
            self._loop.add_writer(self._descriptor, self._on_socket_ready)
        self._awaited = self._loop.create_future()
        try:
            await self._awaited
        finally:
            self._awaited = None
            if is_sending:
                self._loop.remove_writer(self._descriptor)

    def _on_socket_ready(self) -> None:
        if self._awaited is not None:
            if not self._awaited.done():
                self._awaited.set_result(None)
            return
        # Data without a request: a notice, or the server ends the session.
        try:
            self.connection.pgconn.consume_input()
        except OperationalError:
            self._lose()
