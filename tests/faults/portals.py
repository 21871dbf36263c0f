"""Portals in an operator's setup: started, and restarted by an init."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.faults.database import bound
from tests.processes import (
    ROOT,
    children_of,
    free_port,
    is_alive,
    members,
    status_of,
    wait_for,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET_KEY: Final = "k" * 60
_DRAIN: Final = 30.0  # seconds a portal may take to finish pending requests


def surroundings(folder: Path, address: str, port: int = 0) -> dict[str, str]:
    """An environment with a separate data folder, no inherited settings, and this database."""
    around = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    return {
        **around,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GATEHOUSE_ENV_FILE": os.devnull,
        "GATEHOUSE_VAR": str(folder),
        "GATEHOUSE_SECRET_KEY": SECRET_KEY,
        "GATEHOUSE_DATABASE_URL": address,
        "GATEHOUSE_LISTEN_PORT": str(port or 8000),
        "GATEHOUSE_EXTERNAL_URL": f"http://127.0.0.1:{port or 8000}",
        "GATEHOUSE_LOG_LEVEL": "ERROR",
        "GATEHOUSE_WEB_WORKERS": "1",
        # No load balancer here checks whether a portal is about to stop.
        "GATEHOUSE_DRAIN_SECONDS": "0",
    }


WEB: Final = (sys.executable, "-m", "portal.serve")


def words_of_worker() -> list[str]:
    """The worker's command as in its container."""
    words = [sys.executable, "-m", "celery", "--app", "portal.celery", "worker"]
    return [*words, "--loglevel", "info", "--concurrency", "2"]


class Supervised:
    """A process of the product and an init that restarts it after any unexpected end.

    Its remaining children are ended before, as a control group would.
    """

    def __init__(self, words: list[str], environment: dict[str, str], log: Path) -> None:
        self.words, self.environment, self._log = words, environment, log
        self.starts: list[float] = []
        self._wanted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: threading.Thread | None = None

    def start(self) -> None:
        """Start it and supervise it."""
        self._wanted = True
        self._launch()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _launch(self) -> None:
        self.starts.append(time.monotonic())
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own words
                bound(self.words, "TERM"),
                env=self.environment,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _watch(self) -> None:
        while True:
            self.main.wait()
            self.sweep()
            if not self._wanted:
                return
            # A failpoint applies to one process: a restarted one works normally.
            self.environment.pop("FAILPOINTS", None)
            self._launch()

    def sweep(self) -> None:
        """End all its processes at once (kill -9)."""
        for process in members(self.main.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    @property
    def main(self) -> subprocess.Popen[bytes]:
        """The started process."""
        assert self._process
        return self._process

    def log(self) -> str:
        """Its output."""
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """Ask it to finish and exit (SIGTERM), like a deploy."""
        self._wanted = False
        if self.main.poll() is None:
            self.main.send_signal(signal.SIGTERM)
        try:
            self.main.wait(_DRAIN)
        except subprocess.TimeoutExpired:
            self.sweep()
        if self._watcher:
            self._watcher.join(10)


class Portal(Supervised):
    """One host's portal: with its own port and folder, and a database shared with the others."""

    def __init__(self, folder: Path, address: str, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        around = {**surroundings(folder, address, self.port), **environment}
        super().__init__([*WEB], around, folder / "log")

    def workers(self) -> list[int]:
        """The processes that answer; the parent if it has no children."""
        found = [p for p in children_of(self.main.pid) if _is_web(p)]
        return found or [self.main.pid]

    def kill(self, victim: int) -> None:
        """End one of its processes at once, and wait until others have replaced it."""
        starts = len(self.starts) + (victim == self.main.pid)
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: not is_alive(victim) and len(self.starts) >= starts)
        self.wait()

    def is_ready(self) -> bool:
        """Whether it would accept reviews."""
        with contextlib.suppress(Exception):
            return status_of(self.port, "/readyz") == 200
        return False

    def wait(self) -> float:
        """Wait until it is ready; returns the seconds since its last start."""
        wait_for(self.is_ready)
        return time.monotonic() - self.starts[-1]


def _is_web(process: int) -> bool:
    words = words_of(process)
    return bool(words) and "resource_tracker" not in words


@contextlib.contextmanager
def portals(folder: Path, address: str, *settings: dict[str, str]) -> Iterator[list[Portal]]:
    """One separately started portal per setting, ready; removed after the test."""
    made = [Portal(folder / f"host{i}", address, **each) for i, each in enumerate(settings)]
    try:
        for portal in made:
            portal.start()
        for portal in made:
            portal.wait()
        yield made
    finally:
        for portal in made:
            portal.stop()
