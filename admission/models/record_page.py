"""RecordPage, a stretch of the record with its cursors; CappedCount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from admission.models.audit_event import AuditEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """A stretch of the record, newest first; cursors are empty at its ends.

    ``searched_to`` is where a search ran out of time: rows beyond it were not read.
    """

    events: tuple[AuditEvent, ...]
    newer: str = ""
    older: str = ""
    searched_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class CappedCount:
    """A number of rows, counted up to a limit only."""

    number: int
    is_capped: bool = False

    def __str__(self) -> str:
        return f"{self.number:,}{'+' if self.is_capped else ''}"


def page_of(events: list[AuditEvent], *, newer: bool, older: bool) -> RecordPage:
    """The page of these events, with cursors to what is ``newer`` and ``older``."""
    return RecordPage(
        events=tuple(events),
        newer=events[0].id if newer and events else "",
        older=events[-1].id if older and events else "",
    )
