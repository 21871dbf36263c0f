"""Load as API servers make it: many kept connections, one review at a time on each.

A plain balancer stands before the portals: a connection that is refused or lost goes to the next
portal. A review that was sent is never sent again; whether it counts, the record will say.
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
_PAUSE: Final = 0.02  # seconds before asking again where nobody listens
_OK: Final = 200
PATIENCE: Final = 15.0  # seconds for an answer; longer than any budget


@dataclass(frozen=True, slots=True)
class Question:
    """One review, ready to be sent, and what it is about."""

    head: bytes
    body: bytes
    uid: str
    object_uid: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; ``status`` 0 where nothing did. ``began`` is ``time.monotonic()``."""

    question: Question
    status: int
    began: float
    seconds: float
    allowed: bool | None = None
    decision: str = ""
    portal: int = 0

    @property
    def ended(self) -> float:
        """When it came."""
        return self.began + self.seconds


def ask_for(
    manifest: dict[str, object],
    *,
    secret: str,
    cluster: str = "prod",
    timeout: str = "10s",
    **request: object,
) -> Iterator[Question]:
    """Endless reviews of new objects like this one; its uid and name differ each time."""
    head = head_of(f"/admission/{cluster}/validate?timeout={timeout}", secret=secret)
    # Compact, as an API server writes it.
    template = json.dumps(_review(manifest, request), separators=(",", ":")).encode()
    while True:
        yield _question(head, template, str(uuid4()))


def head_of(path: str, *, secret: str) -> bytes:
    """Everything before a body, up to the number of its bytes."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\nContent-Length: "
    ).encode()


def question_of(head: bytes, body: bytes, *, uid: str, object_uid: str = "") -> Question:
    """Put a body behind a head; ``uid`` is what the answer has to repeat, if it is known."""
    return Question(head + f"{len(body)}\r\n\r\n".encode(), body, uid, object_uid)


def again(question: Question) -> Question:
    """The same object asked for again: a new round trip, so a new request uid."""
    uid = str(uuid4())
    body = question.body.replace(question.uid.encode(), uid.encode())
    return Question(question.head, body, uid, question.object_uid)


def _question(head: bytes, template: bytes, object_uid: str) -> Question:
    uid = str(uuid4())
    body = template.replace(b"@request@", uid.encode()).replace(b"@object@", object_uid.encode())
    return question_of(head, body, uid=uid, object_uid=object_uid)


def _review(manifest: dict[str, object], request: dict[str, object]) -> dict[str, object]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    named = {"name": "p-@object@", **metadata, "uid": "@object@"}
    asked = {
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
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


class _Wire(asyncio.Protocol):
    """One connection with at most one review under way."""

    def __init__(self) -> None:
        self.buffer = b""
        self.lost = False
        self.answered: asyncio.Future[tuple[int, bytes]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self, question: Question) -> asyncio.Future[tuple[int, bytes]]:
        """Send a review; what comes back is (status, body), or (0, nothing)."""
        self.buffer = b""
        self.answered = asyncio.get_running_loop().create_future()
        assert self.transport
        self.transport.write(question.head + question.body)
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
        """Use it no more."""
        self.lost = True
        if self.transport:
            self.transport.abort()


class Load:
    """Reviews on their way, and the answers so far; ``pace`` is reviews per second, 0: no limit."""

    def __init__(
        self,
        portals: Sequence[Portal],
        questions: Iterable[Question],
        *,
        connections: int,
        pace: float = 0,
    ) -> None:
        self.ports = [portal.port for portal in portals]
        self.questions, self.connections = iter(questions), connections
        self.answers: list[Answer] = []
        self.pace, self._next = pace, 0.0
        self._stopping = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> None:
        """Begin, beside the test."""
        self._next = time.monotonic()
        self._thread.start()

    def finish(self) -> list[Answer]:
        """Wait until all questions are answered."""
        self._thread.join()
        return self.answers

    def stop(self) -> list[Answer]:
        """Ask no more, and wait for what is under way."""
        self._stopping = True
        return self.finish()

    def wait_until_answered(self, count: int, *, after: float) -> float:
        """Wait for so many verdicts to reviews that were asked after that moment.

        Gives the seconds from that moment to the last of these.
        """

        def answered() -> list[Answer]:
            found = [answer for answer in self.since(after) if answer.status == _OK]
            return found if len(found) >= count else []

        return sorted(answer.ended for answer in wait_for(answered))[count - 1] - after

    def since(self, moment: float) -> list[Answer]:
        """The answers to what was asked after ``time.monotonic()`` was that."""
        return [answer for answer in list(self.answers) if answer.began >= moment]

    async def _run(self) -> None:
        tasks = [self._client(number) for number in range(self.connections)]
        await asyncio.gather(*tasks)

    async def _client(self, number: int) -> None:
        wire, portal = None, number
        while (question := await self._draw()) is not None:
            while wire is None or wire.lost:
                portal += wire is not None
                wire = await self._connect(portal)
                if wire is None:
                    if self._stopping:
                        return
                    portal += 1
                    await asyncio.sleep(_PAUSE)
            self.answers.append(await self._ask(wire, question, portal % len(self.ports)))
        if wire is not None:
            wire.close()

    async def _draw(self) -> Question | None:
        if self.pace:
            self._next += 1 / self.pace
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        return None if self._stopping else next(self.questions, None)

    async def _connect(self, portal: int) -> _Wire | None:
        loop = asyncio.get_running_loop()
        port = self.ports[portal % len(self.ports)]
        with contextlib.suppress(OSError):
            _, wire = await loop.create_connection(_Wire, "127.0.0.1", port)
            return wire
        return None

    async def _ask(self, wire: _Wire, question: Question, portal: int) -> Answer:
        began = time.monotonic()
        try:
            status, body = await asyncio.wait_for(wire.send(question), PATIENCE)
        except TimeoutError:
            wire.close()
            status, body = 0, b""
        seconds = time.monotonic() - began
        if status != _OK:
            return Answer(question, status, began, seconds, portal=portal)
        response = json.loads(body)["response"]
        assert not question.uid or response["uid"] == question.uid
        decision = response["auditAnnotations"]["decision-id"]
        return Answer(question, status, began, seconds, response["allowed"], decision, portal)


@contextlib.contextmanager
def under_load(
    portals: Sequence[Portal],
    questions: Iterable[Question],
    *,
    connections: int = 16,
    pace: float = 0,
) -> Iterator[Load]:
    """Load while the test does something to the portals; ended when it is done."""
    load = Load(portals, questions, connections=connections, pace=pace)
    load.start()
    try:
        yield load
    finally:
        load.stop()


def answers_to(
    portals: Sequence[Portal], questions: Iterable[Question], *, connections: int
) -> list[Answer]:
    """Ask all of these, and wait for the answers."""
    load = Load(portals, questions, connections=connections)
    load.start()
    return load.finish()


def seconds_at(share: float, answers: Sequence[Answer]) -> float:
    """The seconds within which this share of the answers came (0.99: the p99)."""
    ordered = sorted(answer.seconds for answer in answers)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
