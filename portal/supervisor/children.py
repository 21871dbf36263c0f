"""The processes of one portal: started together, watched, stopped together."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE: Final = 12.0  # seconds between asking a process to stop and making it
_STEP: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1


def commands() -> Mapping[str, list[str]]:
    """What is started: the commands of the container image."""
    var = Path(settings.GATEHOUSE_VAR)
    celery = [sys.executable, "-m", "celery", "--app", "portal.celery", "--quiet"]
    level = ["--loglevel", "warning"]
    # The embedded form of a worker: several tasks at once in one process, and no other worker
    # that it would have to send news to.
    alone = ["--pool", "threads", "--without-mingle", "--without-gossip", "--without-heartbeat"]
    return {
        "web": [sys.executable, "-m", "portal.serve"],
        "worker": [*celery, "worker", *level, *alone],
        "beat": [*celery, "beat", *level, "--schedule", str(var / "beat-schedule"), "--pidfile="],
    }


def environment(name: str = "") -> dict[str, str]:
    """What a process finds around it: no balancer watches, so they stop without a pause.

    Only the worker is told where the private keys of clusters' credentials are.
    """
    around = {**os.environ, "GATEHOUSE_DRAIN_SECONDS": "0"}
    if name != "worker":
        around["GATEHOUSE_SEAL_PRIVATE_KEYS_FILE"] = os.devnull
    return around


def _die_with_parent() -> Callable[[], object] | None:
    """Have Linux end a child whose supervisor was killed outright and could not do it."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(slots=True)
class Children:
    """The running processes by name."""

    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, commands: Mapping[str, list[str]]) -> None:
        """Start all; each leads a process group, so that Ctrl-C reaches only the supervisor."""
        for name, words in commands.items():
            self.running[name] = subprocess.Popen(  # noqa: S603  our own words
                words,
                env=environment(name),
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_die_with_parent(),  # noqa: PLW1509  no thread runs yet
            )

    def ended(self) -> str:
        """The first process that stopped by itself, in words; empty while all run."""
        for name, process in self.running.items():
            code = process.poll()
            if code is not None:
                return f"{name} stopped with exit code {code}"
        return ""

    def stop(self) -> None:
        """Ask all to stop, wait, then make those that did not; none is left behind."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while self._alive() and time.monotonic() < deadline:
            time.sleep(_STEP)
        self._signal(signal.SIGKILL)
        for process in self.running.values():
            process.wait()

    def _alive(self) -> bool:
        return any(process.poll() is None for process in self.running.values())

    def _signal(self, number: int) -> None:
        """Signal whole groups: a group may outlive its leader."""
        for process in self.running.values():
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                continue
