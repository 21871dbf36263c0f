"""The child processes of the supervisor: started together, watched, stopped together."""

from __future__ import annotations

import contextlib
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

from portal.serving.pauses import Pauses

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

    Only the worker is given the place of the private keys of clusters' credentials are.
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


@dataclass(frozen=True, slots=True)
class End:
    """How one process stopped by itself: its exit code, below 0 that of a signal."""

    name: str
    code: int

    @property
    def can_heal(self) -> bool:
        """Whether starting it again may help: not where a setting is wrong or the port is taken."""
        return self.code != os.EX_CONFIG

    def __str__(self) -> str:
        return f"{self.name} stopped with exit code {self.code}"


@dataclass(slots=True)
class Children:
    """The processes by name: what starts each, those that run, and how long each pauses."""

    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    _pauses: dict[str, Pauses] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)  # when to start what has ended

    def start(self, commands: Mapping[str, list[str]]) -> None:
        """Start all; each leads a process group, so that Ctrl-C reaches only the supervisor."""
        self.words = dict(commands)
        self._pauses = {name: Pauses() for name in commands}
        for name in commands:
            self._start(name)

    def _start(self, name: str) -> None:
        self.running[name] = subprocess.Popen(  # noqa: S603  our own words
            self.words[name],
            env=environment(name),
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent(),  # noqa: PLW1509  no thread runs yet
        )

    def ended(self) -> list[End]:
        """Those that stopped by themselves and are not waiting to be started again."""
        codes = {name: process.poll() for name, process in self.running.items()}
        return [
            End(name, code)
            for name, code in codes.items()
            if code is not None and name not in self._due
        ]

    def start_later(self, name: str) -> float:
        """Have one that ended started again once its pause is over; gives the pause in seconds.

        What it left running in its group is ended first: two workers must not share one task.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running[name].pid, signal.SIGKILL)
        pause = self._pauses[name].next()
        self._due[name] = time.monotonic() + pause
        return pause

    def start_due(self) -> None:
        """Start those whose pause is over."""
        now = time.monotonic()
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._start(name)

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
