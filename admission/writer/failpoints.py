"""Failpoints: names ("after-lock") at which a test's action kills, stops, raises or sleeps.

``FAILPOINTS="before-commit:kill:3,after-lock:sleep=0.5"`` kills the process when it comes to
``before-commit`` for the third time, and halts each passage of ``after-lock`` for half a second.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import Final

NAMES: Final = (
    "before-queue",
    "after-queue",
    "batch-begin",
    "after-lock",
    "after-revision",
    "after-decide",
    "before-ledger",
    "after-ledger",
    "before-audit",
    "after-audit",
    "before-commit",
    "after-commit",
    "before-answer",
)
VARIABLE: Final = "FAILPOINTS"


class FailpointError(RuntimeError):
    """The failure of the action ``raise``."""


@dataclass(slots=True)
class _Failpoint:
    """An action, and the passage at which it acts; ``sleep`` acts at every one."""

    action: str
    passage: int = 1
    passages: int = 0

    def act(self) -> None:
        """Count a passage; fail if it is the one."""
        self.passages += 1
        if self.action.startswith("sleep="):
            time.sleep(float(self.action.removeprefix("sleep=")))
        elif self.passages == self.passage:
            if self.action == "raise":
                raise FailpointError
            os.kill(os.getpid(), signal.SIGKILL if self.action == "kill" else signal.SIGSTOP)


def read(text: str) -> dict[str, _Failpoint]:
    """Parse ``name:action[:passage],…``; raises ValueError for an unknown name or action."""
    failpoints = {}
    for entry in filter(None, text.split(",")):
        name, _, action_and_passage = entry.partition(":")
        action, _, passage = action_and_passage.partition(":")
        is_action = action in ("kill", "raise", "stop") or action.startswith("sleep=")
        if name not in NAMES or not is_action:
            raise ValueError(f"{VARIABLE}: {entry!r} is no failpoint")
        failpoints[name] = _Failpoint(action, int(passage or 1))
    return failpoints


armed: Final = read(os.environ.get(VARIABLE, ""))
_passage_lock: Final = threading.Lock()


def hit(name: str) -> None:
    """Pass a place; fail there if the environment named it when the process started."""
    if armed and name in armed:
        with _passage_lock:
            armed[name].act()
