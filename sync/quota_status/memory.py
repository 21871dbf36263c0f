"""StatusMemory: the last write of each quota's status, and how long the next one waits; pure.

Kubernetes' controller may write the same status. It counts what exists, we count charges: both
agree, but for moments. The pauses keep such a moment from becoming a fight.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sync.quota_status.due import StatusWrite

    Place = tuple[str, str]

CHANGED_PAUSE: Final = 1.0
"""Seconds between two writes of one quota's status."""
SAME_PAUSE: Final = 5.0
"""Seconds until amounts are written again that somebody else overwrote."""
REFUSED_PAUSE: Final = 60.0
"""Seconds until a write is tried again that cannot succeed now: no permission, or no such quota."""


class StatusOutcome(StrEnum):
    """The result of one write of a status."""

    WRITTEN = "written"
    CONFLICT = "conflict"
    GONE = "gone"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"


_REFUSALS: Final = frozenset({StatusOutcome.FORBIDDEN, StatusOutcome.INVALID, StatusOutcome.GONE})


@dataclass(frozen=True, slots=True, kw_only=True)
class LastStatus:
    """One write of a quota's status: object, amounts, result, and when."""

    uid: str
    status: Mapping[str, Mapping[str, str]]
    outcome: StatusOutcome
    at: float

    def pause_before(self, write: StatusWrite) -> float:
        """The least number of seconds between this write and the next one."""
        if write.uid != self.uid:
            return 0.0
        if self.outcome in _REFUSALS:
            return REFUSED_PAUSE
        is_same = self.outcome is StatusOutcome.WRITTEN and write.status == self.status
        return SAME_PAUSE if is_same else CHANGED_PAUSE


@dataclass(frozen=True, slots=True)
class StatusMemory:
    """The last writes in one cluster, by namespace and name. Times are those of one clock."""

    last: Mapping[Place, LastStatus] = field(default_factory=dict)

    @property
    def forbidden(self) -> list[Place]:
        """The quotas whose last write was forbidden, in order."""
        return sorted(
            place for place, last in self.last.items() if last.outcome is StatusOutcome.FORBIDDEN
        )

    def ready(self, writes: Iterable[StatusWrite], *, now: float) -> list[StatusWrite]:
        """The writes that need not wait."""
        return [write for write in writes if self._wait(write, now) <= 0]

    def next_wait(self, writes: Iterable[StatusWrite], *, now: float) -> float | None:
        """The seconds until the first of the waiting writes is ready; None if none waits."""
        waits = (self._wait(write, now) for write in writes)
        return min((wait for wait in waits if wait > 0), default=None)

    def after(
        self, results: Iterable[tuple[StatusWrite, StatusOutcome]], *, now: float
    ) -> StatusMemory:
        """The memory after these writes, without what no write waits for any more."""
        kept = {
            place: last for place, last in self.last.items() if now - last.at < 2 * REFUSED_PAUSE
        }
        news = {
            write.place: LastStatus(uid=write.uid, status=write.status, outcome=outcome, at=now)
            for write, outcome in results
        }
        return replace(self, last={**kept, **news})

    def _wait(self, write: StatusWrite, now: float) -> float:
        last = self.last.get(write.place)
        return 0.0 if last is None else max(0.0, last.at + last.pause_before(write) - now)
