"""CheckKind, CheckState and CheckResult: what was checked of a change's content, and its end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class CheckKind(StrEnum):
    """What is checked; the replay and the restarts are for a worker."""

    TESTS = "tests"
    LINTS = "lints"
    BASE = "base"
    REPLAY = "replay"
    RESTARTS = "restarts"


class CheckState(StrEnum):
    """How a check has ended; one that warned stands in nobody's way."""

    WAITING = "waiting"
    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"


BY_WORKER: Final = (CheckKind.REPLAY, CheckKind.RESTARTS)
IN_WORDS: Final = {
    CheckKind.TESTS: "tests",
    CheckKind.LINTS: "lints",
    CheckKind.BASE: "base",
    CheckKind.REPLAY: "replay",
    CheckKind.RESTARTS: "running pods",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How one check of a content has ended; ``number`` is None where nothing was counted."""

    kind: CheckKind
    state: CheckState
    number: int | None = None
    words: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether its number is known; red tests fail their check, and are counted as well."""
        return self.is_green or (self.kind, self.state) == (CheckKind.TESTS, CheckState.FAILED)

    @property
    def is_green(self) -> bool:
        """Whether it is over and has not failed."""
        return self.state in (CheckState.PASSED, CheckState.WARNED)
