"""Processes that are started, watched and, whatever happens, stopped; what they cost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
PATIENCE: Final = 10.0  # seconds between asking a process to stop and making it


@dataclass(frozen=True, slots=True)
class Stat:
    """One process, as /proc tells: CPU in seconds since its start, memory in bytes."""

    pid: int
    parent: int
    session: int
    cpu: float
    resident: int


def stat_of(pid: int | str) -> Stat | None:
    """Read one process; None when it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return None
    words = text.rpartition(")")[2].split()
    if words[0] == "Z":
        return None
    return Stat(
        pid=int(pid),
        parent=int(words[1]),
        session=int(words[3]),
        cpu=(int(words[11]) + int(words[12])) / TICKS,
        resident=int(words[21]) * PAGE,
    )


def members(session: int) -> list[Stat]:
    """The living processes of one session, the leader first."""
    found = (stat_of(path.name) for path in Path("/proc").glob("[0-9]*"))
    return sorted((s for s in found if s and s.session == session), key=lambda s: s.pid)


def cpu_of(session: int) -> float:
    """CPU seconds of a session's living processes so far."""
    return sum(stat.cpu for stat in members(session))


@contextlib.contextmanager
def running(
    words: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a session of its own, ended with all that it started."""
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603 - our own words
            words,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a session to stop, wait, then make it."""
    _signal(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while members(process.pid) and time.monotonic() < deadline:
        process.poll()
        time.sleep(0.05)
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(session: int, number: int) -> None:
    for stat in members(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(stat.pid, number)
