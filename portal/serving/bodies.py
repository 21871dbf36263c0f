"""Reading request bodies in the event loop, within limits of bytes and time.

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

    async def whole(self, protocol: HTTPProtocol, promised: int) -> bytes:
        """Read a short body of a known caller at once; raises ``RefusedError``."""
        task = self._begin(LONGEST)
        try:
            body: bytes = await protocol()
        except asyncio.CancelledError:
            raise self._reason(task) from None
        except ProtocolClosed:
            raise RefusedError(400) from None
        finally:
            del self._due[task]
        if len(body) != promised:
            raise RefusedError(400)
        return body

    async def read(self, protocol: HTTPProtocol, promised: int | None, bound: BodyLimit) -> bytes:
        """Read a body piece by piece; ``release`` its length once it is answered.

        Raises ``RefusedError``.
        """
        if promised is not None and promised > bound.most:
            raise RefusedError(413)
        task, pieces = self._begin(GRACE), _Pieces(self, bound)
        try:
            start = self._loop.time()
            async for piece in protocol:
                pieces.add(piece)
                self._due[task] = start + min(LONGEST, GRACE + pieces.size / RATE)
            return pieces.joined(promised)
        except asyncio.CancelledError:
            self.release(pieces.held)
            raise self._reason(task) from None
        except RefusedError:
            self.release(pieces.held)
            raise
        except ProtocolClosed:  # the body ends early; its sender may still read an answer
            self.release(pieces.held)
            raise RefusedError(400) from None
        finally:
            del self._due[task]

    def release(self, size: int) -> None:
        """Give so many bytes of the common limit back."""
        self.held -= size

    def _begin(self, seconds: float) -> Task[None]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - granian runs each call in a task
        self._due[task] = self._loop.time() + seconds
        return task

    def _cancel_late(self) -> None:
        # One timer for all bodies: a timer for each would cost every call a little.
        now = self._loop.time()
        for task, due in list(self._due.items()):
            if due < now:
                self._due[task] = _GIVEN_UP
                task.cancel()
        self._timer = self._loop.call_later(INTERVAL, self._cancel_late)

    def _reason(self, task: Task[None]) -> BaseException:
        # Two things cancel a task: the timer above, and the end of the process.
        if self._due[task] != _GIVEN_UP:
            return asyncio.CancelledError()
        task.uncancel()  # the call goes on, to answer 408
        return RefusedError(408)


class _Pieces:
    """The pieces of one body so far."""

    def __init__(self, bodies: Bodies, bound: BodyLimit) -> None:
        self._bodies, self._bound = bodies, bound
        self._room = MOST_HELD if bound.is_known else MOST_HELD - RESERVED
        self.size = self.held = 0
        self.kept: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._bound.most:
            raise RefusedError(413)
        kept = piece[: self._bound.kept - self.held]
        if self._bodies.held + len(kept) > self._room:
            raise RefusedError(503)
        self.kept.append(kept)
        self.held += len(kept)
        self._bodies.held += len(kept)

    def joined(self, promised: int | None) -> bytes:
        if promised is not None and self.size != promised:
            raise RefusedError(400)
        return b"".join(self.kept)
