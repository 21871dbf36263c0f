"""The file broker: messages arrive complete and once, with any number of readers and writers."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

import pytest
from kombu import Connection

from portal import file_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kombu.simple import SimpleQueue

MANY = 100


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Callable[[], SimpleQueue]]:
    """Makes ends of one queue, each on a connection of its own."""
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    options = {
        "data_folder_in": str(tmp_path / "queue"),
        "data_folder_out": str(tmp_path / "queue"),
        "control_folder": str(tmp_path / "control"),
    }
    made: list[Any] = []

    def connect() -> SimpleQueue:
        transport = "portal.file_broker:FileTransport"
        made.append(Connection("filesystem://", transport=transport, transport_options=options))
        # Kombu remembers for the whole process which queues it has made, wherever they are.
        return made[-1].SimpleQueue(tmp_path.name)

    yield connect
    for connection in made:
        connection.release()


def take_all(end: SimpleQueue, found: list[int]) -> None:
    while len(found) < 2 * MANY:
        try:
            message = end.get(block=False)
        except Empty:
            continue
        message.ack()
        found.append(message.payload)


def test_messages_of_several_come_whole_and_once(queue: Callable[[], SimpleQueue]) -> None:
    found: list[int] = []
    readers = [
        threading.Thread(target=take_all, args=(queue(), found), daemon=True) for _ in range(2)
    ]
    for reader in readers:
        reader.start()
    ends = [queue(), queue()]
    for number in range(2 * MANY):
        ends[number % 2].put(number)
    for reader in readers:
        reader.join(60)
    assert sorted(found) == list(range(2 * MANY))


def test_messages_come_in_turn(
    queue: Callable[[], SimpleQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    end, clock = queue(), iter(range(10**18, 2 * 10**18, 10**9))
    monkeypatch.setattr(file_broker, "time_ns", lambda: next(clock))
    for number in range(5):
        end.put(number)
    assert [end.get(block=False).payload for _ in range(5)] == list(range(5))


def test_nothing_is_seen_that_is_not_complete(
    queue: Callable[[], SimpleQueue], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    write = Path.write_text

    def look(path: Path, text: str) -> int:
        written = write(path, text[:1])
        seen.update(file.suffix for file in tmp_path.rglob("*") if file.stat().st_size == 1)
        return written + write(path, text)

    monkeypatch.setattr(Path, "write_text", look)
    queue().put(1)
    assert seen == {".part"}


def test_queue_that_is_deleted_gets_no_more_messages(
    queue: Callable[[], SimpleQueue], tmp_path: Path
) -> None:
    end = queue()
    end.put(1)
    assert len(end) == 1
    end.queue.delete()
    assert not list((tmp_path / "queue").iterdir())
    end.producer.publish(1, routing_key=tmp_path.name)
    assert not list((tmp_path / "queue").iterdir())
