"""Load in the pattern of API servers: many persistent connections, one review at a time on each.

A simple load balancer stands before the portals: a connection that is refused or lost goes to the
next portal. A review that was sent is never sent again; the record shows whether it counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.faults.portals import Portal

_END_OF_HEAD: Final = b"\r\n\r\n"
_PAUSE: Final = 0.02  # seconds before a retry if no portal listens
_OK: Final = 200
PATIENCE: Final = 15.0  # seconds for an answer; longer than any budget


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """One review, ready to be sent, and its object."""

    head: bytes
    body: bytes
    uid: str
    object_uid: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer; ``status`` is 0 without one. ``began`` is ``time.monotonic()``."""

    review: ReviewRequest
    status: int
    began: float
    seconds: float
    allowed: bool | None = None
    decision: str = ""
    portal: int = 0

    @property
    def ended(self) -> float:
        """The time of the answer."""
        return self.began + self.seconds


def reviews_of(
    manifest: dict[str, object],
    *,
    secret: str,
    cluster: str = "prod",
    phase: str = "validate",
    timeout: str = "10s",
    **request: object,
) -> Iterator[ReviewRequest]:
    """Endless reviews of new objects like this one; uid and name differ each time."""
    head = head_of(f"/admission/{cluster}/{phase}?timeout={timeout}", secret=secret)
    # Compact, as written by an API server.
    template = json.dumps(_review(manifest, request), separators=(",", ":")).encode()
    while True:
        yield _request(head, template, str(uuid4()))


def head_of(path: str, *, secret: str) -> bytes:
    """The header of a request, up to the length of the body."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\nContent-Length: "
    ).encode()


def request_of(head: bytes, body: bytes, *, uid: str, object_uid: str = "") -> ReviewRequest:
    """Put a body behind a header; ``uid`` is the expected uid of the answer, if known."""
    return ReviewRequest(head + f"{len(body)}\r\n\r\n".encode(), body, uid, object_uid)


def again(review: ReviewRequest) -> ReviewRequest:
    """The same object again: a new round trip with a new request uid."""
    uid = str(uuid4())
    body = review.body.replace(review.uid.encode(), uid.encode())
    return ReviewRequest(review.head, body, uid, review.object_uid)


def _request(head: bytes, template: bytes, object_uid: str) -> ReviewRequest:
    uid = str(uuid4())
    body = template.replace(b"@request@", uid.encode()).replace(b"@object@", object_uid.encode())
    return request_of(head, body, uid=uid, object_uid=object_uid)


def _review(manifest: dict[str, object], request: dict[str, object]) -> dict[str, object]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    named = {"name": "p-@object@", **metadata, "uid": "@object@"}
    request = {
        "uid": "@request@",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": metadata["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
        "object": {**manifest, "metadata": named},
        "oldObject": None,
        "dryRun": False,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class _Wire(asyncio.Protocol):
    """One connection with at most one pending review."""

    def __init__(self) -> None:
        self.buffer = b""
        self.lost = False
        self.answered: asyncio.Future[tuple[int, bytes]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self, review: ReviewRequest) -> asyncio.Future[tuple[int, bytes]]:
        """Send a review; the result is (status, body), or (0, nothing)."""
        self.buffer = b""
        self.answered = asyncio.get_running_loop().create_future()
        assert self.transport
        self.transport.write(review.head + review.body)
        return self.answered

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(_END_OF_HEAD)
        if not end:
            return
        lines = head.lower().split(b"\r\n")
        (length,) = (int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if len(body) < length:
            return
        if b"connection: close" in lines:
            self.close()
        self._answer(int(lines[0].split()[1]), body)

    def connection_lost(self, _error: Exception | None) -> None:
        self.lost = True
        self._answer(0, b"")

    def _answer(self, status: int, body: bytes) -> None:
        if self.answered and not self.answered.done():
            self.answered.set_result((status, body))

    def close(self) -> None:
        """Close it."""
        self.lost = True
        if self.transport:
            self.transport.abort()


class Load:
    """Pending reviews, and the answers so far; ``pace`` is reviews per second, 0: no limit."""

    def __init__(
        self,
        portals: Sequence[Portal],
        reviews: Iterable[ReviewRequest],
        *,
        connections: int,
        pace: float = 0,
    ) -> None:
        self.ports = [portal.port for portal in portals]
        self.reviews, self.connections = iter(reviews), connections
        self.answers: list[Answer] = []
        self.pace, self._next = pace, 0.0
        self._stopping = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> None:
        """Start, concurrently with the test."""
        self._next = time.monotonic()
        self._thread.start()

    def finish(self) -> list[Answer]:
        """Wait until all reviews are answered."""
        self._thread.join()
        return self.answers

    def stop(self) -> list[Answer]:
        """Send no more, and wait for pending reviews."""
        self._stopping = True
        return self.finish()

    def wait_until_answered(self, count: int, *, after: float) -> float:
        """Wait for that many verdicts on reviews that were sent after that moment.

        Returns the seconds from that moment to the last of these.
        """

        def answered() -> list[Answer]:
            found = [answer for answer in self.since(after) if answer.status == _OK]
            return found if len(found) >= count else []

        return sorted(answer.ended for answer in wait_for(answered))[count - 1] - after

    def since(self, moment: float) -> list[Answer]:
        """The answers to reviews sent since that ``time.monotonic()``."""
        return [answer for answer in list(self.answers) if answer.began >= moment]

    async def _run(self) -> None:
        tasks = [self._client(number) for number in range(self.connections)]
        await asyncio.gather(*tasks)

    async def _client(self, number: int) -> None:
        wire, portal = None, number
        while (review := await self._draw()) is not None:
            while wire is None or wire.lost:
                portal += wire is not None
                wire = await self._connect(portal)
                if wire is None:
                    if self._stopping:
                        return
                    portal += 1
                    await asyncio.sleep(_PAUSE)
            self.answers.append(await self._ask(wire, review, portal % len(self.ports)))
        if wire is not None:
            wire.close()

    async def _draw(self) -> ReviewRequest | None:
        if self.pace:
            self._next += 1 / self.pace
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        return None if self._stopping else next(self.reviews, None)

    async def _connect(self, portal: int) -> _Wire | None:
        loop = asyncio.get_running_loop()
        port = self.ports[portal % len(self.ports)]
        with contextlib.suppress(OSError):
            _, wire = await loop.create_connection(_Wire, "127.0.0.1", port)
            return wire
        return None

    async def _ask(self, wire: _Wire, review: ReviewRequest, portal: int) -> Answer:
        began = time.monotonic()
        try:
            status, body = await asyncio.wait_for(wire.send(review), PATIENCE)
        except TimeoutError:
            wire.close()
            status, body = 0, b""
        seconds = time.monotonic() - began
        if status != _OK:
            return Answer(review, status, began, seconds, portal=portal)
        response = json.loads(body)["response"]
        assert not review.uid or response["uid"] == review.uid
        decision = response["auditAnnotations"]["decision-id"]
        return Answer(review, status, began, seconds, response["allowed"], decision, portal)


@contextlib.contextmanager
def under_load(
    portals: Sequence[Portal],
    reviews: Iterable[ReviewRequest],
    *,
    connections: int = 16,
    pace: float = 0,
) -> Iterator[Load]:
    """Load while the test manipulates the portals; stopped at the end."""
    load = Load(portals, reviews, connections=connections, pace=pace)
    load.start()
    try:
        yield load
    finally:
        load.stop()


def answers_to(
    portals: Sequence[Portal], reviews: Iterable[ReviewRequest], *, connections: int
) -> list[Answer]:
    """Send all of these, and wait for the answers."""
    load = Load(portals, reviews, connections=connections)
    load.start()
    return load.finish()


def seconds_at(share: float, answers: Sequence[Answer]) -> float:
    """The seconds within which this share of the answers arrived (0.99: the p99)."""
    ordered = sorted(answer.seconds for answer in answers)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
