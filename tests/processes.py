"""Starts and inspects the product's own processes."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
ROOT: Final = Path(__file__).resolve().parents[1]
PATIENCE: Final = 180.0  # seconds; a busy machine starts slowly


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(condition: Callable[[], T]) -> T:
    """The first true value of the condition."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "condition never became true"
        time.sleep(0.1)
    return found


def status_of(port: int, path: str, method: str = "GET") -> int:
    """The HTTP status of a path; 0 if nothing answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def is_alive(process: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def words_of(process: int) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def state_of(process: int) -> str:
    """The state of a process as in ``/proc``: T is stopped, Z a zombie; empty if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def children_of(parent: int) -> list[int]:
    """The living direct children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may end while it is read
            state, its_parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z" and int(its_parent) == parent:
                found.append(int(stat.parent.name))
    return found


def members(session: int) -> list[int]:
    """The processes of a session or with it as their group, without zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group, of_session = stat.read_text().rpartition(")")[2].split()[:4]
            if state != "Z" and session in {int(group), int(of_session)}:
                found.append(int(stat.parent.name))
    return found


@contextlib.contextmanager
def running(
    words: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, ended with all its children after the test."""
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - our own words
            words,
            env=dict(environment),
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
