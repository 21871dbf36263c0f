"""LogRow, one row of the log: a line of the search with short words for each of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from admission.record import owners
from portal.pages.decisions.words import GENERATED_KINDS, short_reason, short_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from admission.models import AuditEvent
    from admission.record.owners import Owner
    from admission.record.search.pages import DecisionLine


@dataclass(frozen=True, slots=True)
class LogRow:
    """A decision, and how many like it, in words of one line."""

    line: DecisionLine
    event: AuditEvent

    @property
    def other(self) -> AuditEvent | None:
        """The decision about the request's other call."""
        return self.line.other_event

    @property
    def name(self) -> str:
        """The owner's name; the object's where no controller made it."""
        return shown_name(self.event, self.line.newest.owner)

    @property
    def reason(self) -> str:
        """The reason in a few words; empty where there is nothing to say."""
        return short_reason(self.event)

    @property
    def first_reason(self) -> str:
        """The first of its reasons, as the filter has it."""
        return "".join(self.event.reasons.split()[:1])

    @property
    def user(self) -> str:
        """The user, a service account by its name alone."""
        return short_user(self.event.user)

    @property
    def milliseconds(self) -> str:
        """How long the decisions about the request took."""
        return milliseconds(self.event, *([self.other] if self.other else []))

    @property
    def calls(self) -> str:
        """Each call of the request with its time, the first one first; empty for one call."""
        if self.other is None:
            return ""
        calls = sorted((self.event, self.other), key=lambda call: (call.created, call.phase))
        return ", ".join(f"{call.phase} {milliseconds(call)} ms" for call in calls)


def milliseconds(*events: AuditEvent) -> str:
    """How long decisions took together."""
    return f"{sum(event.duration_us for event in events) / 1000:.1f}"


def recorded_owner(event: AuditEvent) -> Owner:
    """The owner that the object of a refusal names; as in the log, others have none."""
    return owners.NOBODY if event.allowed else owners.of_decision(event)


def shown_name(event: AuditEvent, owner: Owner) -> str:
    """What a decision is called: its owner's name, as far as the record or the name shows it."""
    if owner.name:
        return owner.name
    if event.kind in GENERATED_KINDS and event.name:
        return owners.named(event.name.rstrip("-")) or event.name
    return event.name or event.kind or "unreadable review"


def log_rows(lines: Iterable[DecisionLine]) -> Iterator[LogRow]:
    """The rows of lines whose decisions were read."""
    return (LogRow(line, line.event) for line in lines if line.event)
