"""Celery broker of ``make run``: kombu's filesystem Channel, bindings and messages in whole files.

Kombu's own transport shows others a message, or its table of queues, before its content is
written: the message is lost, and its reader crashes. Here every file is complete when it appears.
"""

from __future__ import annotations

import fcntl
import uuid
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    Binding = list[str]
    Table = list[filesystem.exchange_queue_t]


class Channel(filesystem.Channel):
    """Messages and tables of queues: one file each, in folders that processes share."""

    def get_table(self, exchange: str) -> Table:  # type: ignore[override] # as kombu has it
        """The bindings of an exchange: routing key, pattern, queue."""
        return [filesystem.exchange_queue_t(*binding) for binding in self._bindings(exchange)]

    def _queue_bind(
        self, exchange: str, routing_key: str | None, pattern: str | None, queue: str | None
    ) -> None:
        binding = [routing_key or "", pattern or "", queue or ""]
        with self._changing_bindings(exchange) as bindings:
            if binding not in bindings:
                bindings.insert(0, binding)

    def _delete(self, queue: str, exchange: str, *names: str, **_: Any) -> None:
        self._purge(queue)
        routing_key, pattern = names[:2]
        binding = [routing_key or "", pattern or "", queue or ""]
        with self._changing_bindings(exchange) as bindings:
            if binding in bindings:
                bindings.remove(binding)

    def _bindings(self, exchange: str) -> list[Binding]:
        exchange_file = self._exchange_file(exchange)  # type: ignore[attr-defined] # it is there
        try:
            return list(loads(exchange_file.read_text()))
        except FileNotFoundError:
            return []

    @contextmanager
    def _changing_bindings(self, exchange: str) -> Iterator[list[Binding]]:
        """Lock the table, and replace it by the changed bindings at the end."""
        exchange_file = self._exchange_file(exchange)  # type: ignore[attr-defined] # it is there
        exchange_file.parent.mkdir(parents=True, exist_ok=True)
        with exchange_file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            bindings = self._bindings(exchange)
            yield bindings
            _write_whole(exchange_file, bindings)

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override] # as it is
        # The wall clock: messages keep their order across restarts of the machine. Kombu's own
        # monotonic clock starts again at zero.
        message_name = f"{time_ns() // 1_000_000:015}_{uuid.uuid4()}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / message_name, payload)

    def _get(self, queue: str, timeout: float | None = None) -> Any:  # noqa: ARG002 - never waits
        for message_file in sorted(Path(self.data_folder_in).glob(f"*.{queue}.msg")):
            if message_file.name.partition(".")[2] != f"{queue}.msg":
                continue  # the queue "a.celery", where "celery" was wanted
            taken_file = message_file.with_suffix(".taken")
            try:  # a rename succeeds for one process only: it claims the message
                message_file.rename(taken_file)
            except FileNotFoundError:  # another worker was faster
                continue
            message = loads(taken_file.read_text())
            taken_file.unlink()
            return message
        raise Empty


class FileTransport(filesystem.Transport):
    """The transport that Celery uses."""

    Channel = Channel
    default_connection_params: ClassVar[dict[str, Any]] = {}  # there is no host to complain about


def _write_whole(file: Path, content: object) -> None:
    """Create or replace the file in one step: a rename is atomic, a write is not."""
    part_file = file.with_suffix(f".{uuid.uuid4()}.part")
    part_file.write_text(dumps(content))
    part_file.rename(file)
