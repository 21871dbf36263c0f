"""Bodies read in the event loop piece by piece: BodyLimit, time, rate, bytes held; RefusedError.

A thread is taken only once a body is complete: callers that are slow or send too much are refused
without one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # it is there to be used

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

    from granian.rsgi import HTTPProtocol  # type: ignore[attr-defined] # the same

LONGEST: Final = 10.0  # seconds for a whole body
GRACE: Final = 3.0  # seconds before the rate applies
RATE: Final = 16 * 1024  # bytes a second, at least
MOST_HELD: Final = 64 * 1024 * 1024  # bytes of all bodies that no thread has answered yet
RESERVED: Final = 16 * 1024 * 1024  # of these, for clusters with a valid credential
INTERVAL: Final = 0.25  # seconds between two checks for late bodies
_GIVEN_UP: Final = float("inf")


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

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[Task[None], float] = {}
        self.held = 0
        self._timer = loop.call_later(INTERVAL, self._cancel_late)

    def close(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    async def whole(self, protocol: HTTPProtocol, promised_length: int) -> bytes:
        """Read a short body of a known caller at once; raises ``RefusedError``."""
        body_task = self._begin_body(LONGEST)
        try:
            body: bytes = await protocol()
        except asyncio.CancelledError:
            raise self._cancel_reason(body_task) from None
        except ProtocolClosed:
            raise RefusedError(400) from None
        finally:
            del self._due[body_task]
        if len(body) != promised_length:
            raise RefusedError(400)
        return body

    async def read(self, protocol: HTTPProtocol, promised: int | None, limit: BodyLimit) -> bytes:
        """Read a body piece by piece; ``release`` its length once it is answered.

        Raises ``RefusedError``.
        """
        if promised is not None and promised > limit.most:
            raise RefusedError(413)
        body_task, body_pieces = self._begin_body(GRACE), _BodyPieces(self, limit)
        try:
            read_start = self._loop.time()
            async for body_piece in protocol:
                body_pieces.add(body_piece)
                self._due[body_task] = read_start + min(LONGEST, GRACE + body_pieces.size / RATE)
            return body_pieces.joined(promised)
        except asyncio.CancelledError:
            self.release(body_pieces.held)
            raise self._cancel_reason(body_task) from None
        except RefusedError:
            self.release(body_pieces.held)
            raise
        except ProtocolClosed:  # the body ends early; its sender may still read an answer
            self.release(body_pieces.held)
            raise RefusedError(400) from None
        finally:
            del self._due[body_task]

    def release(self, body_size: int) -> None:
        """Give so many bytes of the common limit back."""
        self.held -= body_size

    def _begin_body(self, seconds: float) -> Task[None]:
        body_task = asyncio.current_task()
        assert body_task is not None  # noqa: S101 - granian runs each call in a task
        self._due[body_task] = self._loop.time() + seconds
        return body_task

    def _cancel_late(self) -> None:
        # One timer for all bodies: a timer for each would cost every call a little.
        now = self._loop.time()
        for body_task, due in list(self._due.items()):
            if due < now:
                self._due[body_task] = _GIVEN_UP
                body_task.cancel()
        self._timer = self._loop.call_later(INTERVAL, self._cancel_late)

    def _cancel_reason(self, body_task: Task[None]) -> BaseException:
        # Two things cancel a task: the timer above, and the end of the process.
        if self._due[body_task] != _GIVEN_UP:
            return asyncio.CancelledError()
        body_task.uncancel()  # the call goes on, to answer 408
        return RefusedError(408)


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
