"""Bodies read in the event loop piece by piece: BodyLimit, time, rate, bytes held; RefusedError.

A thread is taken only once a body is complete: callers that are slow or send too much are refused
without one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from portal.serving.request_head import Receive

LONGEST: Final = 10.0  # seconds for a whole body
GRACE: Final = 3.0  # seconds before the rate applies
RATE: Final = 16 * 1024  # bytes a second, at least
MOST_HELD: Final = 64 * 1024 * 1024  # bytes of all bodies that are not answered yet
RESERVED: Final = 16 * 1024 * 1024  # of these, for clusters with a valid credential


class RefusedError(Exception):
    """A call that is refused without a thread; ``status`` is HTTP's: 400, 408, 413 or 503."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimit:
    """At most ``most`` bytes, of which ``kept`` are kept and the rest is dropped."""

    most: int
    kept: int
    is_known: bool = False
    """Whether a valid credential came with it."""


class Bodies:
    """Reads all bodies of one process, within their limits and a common one."""

    def __init__(self) -> None:
        self.held = 0

    async def read(self, receive: Receive, promised: int | None, limit: BodyLimit) -> bytes:
        """Read a body piece by piece; ``release`` its length once it is answered.

        Raises ``RefusedError``.
        """
        if promised is not None and promised > limit.most:
            raise RefusedError(413)
        body_pieces = _BodyPieces(self, limit)
        try:
            await _receive_all(receive, body_pieces)
            return body_pieces.joined(promised)
        except TimeoutError:
            self.release(body_pieces.held)
            raise RefusedError(408) from None
        except BaseException:
            self.release(body_pieces.held)
            raise

    def release(self, body_size: int) -> None:
        """Give so many bytes of the common limit back."""
        self.held -= body_size


async def _receive_all(receive: Receive, body_pieces: _BodyPieces) -> None:
    """Raises TimeoutError, and RefusedError (413, 503, 400 if the body ends early)."""
    time_limit = _TimeLimit(body_pieces)
    try:
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the caller has gone
                raise RefusedError(400)
            body_pieces.add(message.get("body", b""))
            if not message.get("more_body"):
                return
    except asyncio.CancelledError:
        time_limit.raise_if_over()
        raise
    finally:
        time_limit.end()


class _TimeLimit:
    """Cancels the current task once a body is too slow.

    ``asyncio.timeout`` would have to be moved with each piece; this looks at the size when it ends.
    """

    def __init__(self, body_pieces: _BodyPieces) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._body_pieces, self._start = body_pieces, self._loop.time()
        self._is_over = False
        self._timer = self._loop.call_at(self._start + GRACE, self._look)

    def _look(self) -> None:
        due = self._start + min(LONGEST, GRACE + self._body_pieces.size / RATE)
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._look)
        elif self._task is not None:
            self._is_over = self._task.cancel()

    def raise_if_over(self) -> None:
        """Raise TimeoutError if the task was cancelled for this; it goes on, to answer."""
        if self._is_over and self._task is not None:
            self._task.uncancel()
            raise TimeoutError

    def end(self) -> None:
        """The body is read."""
        self._timer.cancel()


class _BodyPieces:
    """The pieces of one body so far."""

    def __init__(self, bodies: Bodies, body_limit: BodyLimit) -> None:
        self._bodies, self._body_limit = bodies, body_limit
        self._held_limit = MOST_HELD if body_limit.is_known else MOST_HELD - RESERVED
        self.size = self.held = 0
        self.kept: list[bytes] = []

    def add(self, body_piece: bytes) -> None:
        self.size += len(body_piece)
        if self.size > self._body_limit.most:
            raise RefusedError(413)
        kept_piece = body_piece[: self._body_limit.kept - self.held]
        if self._bodies.held + len(kept_piece) > self._held_limit:
            raise RefusedError(503)
        self.kept.append(kept_piece)
        self.held += len(kept_piece)
        self._bodies.held += len(kept_piece)

    def joined(self, promised_length: int | None) -> bytes:
        if promised_length is not None and self.size != promised_length:
            raise RefusedError(400)
        return b"".join(self.kept)
