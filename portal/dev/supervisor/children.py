"""Children of ``make run`` (web, worker, beat, follow): commands, restarts, killpg."""

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

PATIENCE: Final = 12.0  # seconds between SIGTERM and SIGKILL
_STOP_STEP: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1


def commands() -> Mapping[str, list[str]]:
    """The commands of the processes, as in the container image."""
    var = Path(settings.GATEHOUSE_VAR)
    celery = [sys.executable, "-m", "celery", "--app", "portal.celery", "--quiet"]
    logs = ["--loglevel", "warning"]
    # Several tasks at once in one process, without messages to other workers: there are none.
    threads = ["--pool", "threads", "--without-mingle", "--without-gossip", "--without-heartbeat"]
    return {
        "web": [sys.executable, "-m", "portal.serve"],
        "worker": [*celery, "worker", *logs, *threads],
        "beat": [*celery, "beat", *logs, "--schedule", str(var / "beat-schedule"), "--pidfile="],
        "follow": [sys.executable, "manage.py", "follow"],
    }


def environment(name: str = "") -> dict[str, str]:
    """The environment of a process."""
    # No load balancer watches /readyz here, so processes need not wait for one before they stop.
    child_environment = {**os.environ, "GATEHOUSE_DRAIN_SECONDS": "0"}
    # Only these open clusters' credentials, so only they have the private keys.
    if name not in ("worker", "follow"):
        child_environment["GATEHOUSE_SEAL_PRIVATE_KEYS_FILE"] = os.devnull
    # These settings alone offer the demo's people at sign-in; nothing else ever names them.
    if name == "web":
        child_environment["DJANGO_SETTINGS_MODULE"] = "portal.dev.settings"
    return child_environment


def _die_with_parent() -> Callable[[], object] | None:
    """A function that makes Linux end the child with its supervisor, even a killed one."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class StartError(Exception):
    """A failed start and its remedy, in one line."""


@dataclass(frozen=True, slots=True)
class End:
    """A process that stopped by itself, and its exit code (below 0: the signal)."""

    name: str
    code: int

    @property
    def can_restart(self) -> bool:
        """Whether a restart may help: not if a setting is wrong or the port is in use."""
        return self.code != os.EX_CONFIG

    def __str__(self) -> str:
        return f"{self.name} stopped with exit code {self.code}"


@dataclass(slots=True)
class Children:
    """The processes by name: their commands, those that run, and their pauses before a restart."""

    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    _restart_pauses: dict[str, Pauses] = field(default_factory=dict)
    _restart_at: dict[str, float] = field(default_factory=dict)  # when to restart an ended process

    def start(self, commands: Mapping[str, list[str]]) -> None:
        """Start all processes."""
        self.words = dict(commands)
        self._restart_pauses = {name: Pauses() for name in commands}
        for name in commands:
            self._start_child(name)

    def _start_child(self, name: str) -> None:
        self.running[name] = subprocess.Popen(  # noqa: S603  our own words
            self.words[name],
            env=environment(name),
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach only the supervisor
            preexec_fn=_die_with_parent(),  # noqa: PLW1509  no thread runs yet
        )

    def ended(self) -> list[End]:
        """Processes that stopped by themselves and do not wait for a restart."""
        exit_codes = {name: process.poll() for name, process in self.running.items()}
        return [
            End(name, exit_code)
            for name, exit_code in exit_codes.items()
            if exit_code is not None and name not in self._restart_at
        ]

    def start_later(self, name: str) -> float:
        """Schedule the restart of an ended process; returns its pause in seconds."""
        # Kill what it left running in its group: two workers must not run one task.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running[name].pid, signal.SIGKILL)
        restart_pause = self._restart_pauses[name].next()
        self._restart_at[name] = time.monotonic() + restart_pause
        return restart_pause

    def start_due(self) -> None:
        """Restart processes whose pause is over."""
        now = time.monotonic()
        for name in [name for name, due in self._restart_at.items() if due <= now]:
            del self._restart_at[name]
            self._start_child(name)

    def stop(self) -> None:
        """Stop all processes, and kill those that do not stop in time."""
        self._signal_groups(signal.SIGTERM)
        kill_deadline = time.monotonic() + PATIENCE
        while time.monotonic() < kill_deadline:
            if all(process.poll() is not None for process in self.running.values()):
                break
            time.sleep(_STOP_STEP)
        self._signal_groups(signal.SIGKILL)
        for process in self.running.values():
            process.wait()

    def _signal_groups(self, signal_number: int) -> None:
        # Whole groups: a group may outlive its leader.
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal_number)
