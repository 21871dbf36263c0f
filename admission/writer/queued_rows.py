"""QueuedRows: rows whose callers are answered before the commit; submitted until on record.

Only for decisions that are final before they are submitted (``GATEHOUSE_RECORD_MUTATIONS``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from django.conf import settings

from admission import metrics
from admission.writer import session
from admission.writer.pending_decision import UnavailableError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from admission.writer.pending_decision import PendingDecision

logger = logging.getLogger(__name__)
LONGEST_WAIT: Final = 0.05
"""Seconds that the oldest row may wait while further callers are answered before theirs."""
AGAIN_AFTER: Final = 1.0  # seconds


class QueuedRows:
    """The rows of one event loop that are not on record yet."""

    def __init__(self, loop: AbstractEventLoop, submit: Callable[[PendingDecision], None]) -> None:
        self._loop, self._submit = loop, submit
        self._since: dict[PendingDecision, float] = {}  # in the order of submission
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def has_place(self, waiting: int) -> bool:
        """Whether rows come on record quickly; ``waiting`` is the number of callers that wait."""
        oldest = next(iter(self._since.values()), None)
        if oldest is not None and time.monotonic() - oldest > LONGEST_WAIT:
            return False
        return len(self._since) + waiting < settings.GATEHOUSE_QUEUE_LIMIT // 2

    def put(self, pending: PendingDecision) -> None:
        """Submit an item; raises UnavailableError when it cannot be written soon."""
        pending.listen(self._note_settled)
        self._submit(pending)
        self._since[pending] = time.monotonic()
        self._is_empty.clear()
        metrics.QUEUED.inc()

    async def flush(self, within: float) -> None:
        """Wait until all rows are on record, at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._is_empty.wait()
        if self._since:
            logger.error("%d answered mutations are not on record", len(self._since))

    def _note_settled(self, pending: PendingDecision) -> None:
        """Runs in any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._take_settled, pending)

    def _take_settled(self, pending: PendingDecision) -> None:
        error = pending.failure
        # An unknown commit may have been a good one: then the id is taken.
        if error is None or any(map(session.is_taken, error.args)):
            del self._since[pending]
            metrics.QUEUED.dec()
            if not self._since:
                self._is_empty.set()
            return
        logger.warning("an answered mutation is not on record yet: %s", error)
        self._loop.call_later(AGAIN_AFTER, self._submit_again, pending)

    def _submit_again(self, pending: PendingDecision) -> None:
        pending.unsettle()
        try:
            self._submit(pending)
        except UnavailableError as error:
            pending.fail(error)
