"""ReplayScope: which decisions on record are replayed; read in pieces, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import TextField
from django.db.models.functions import Cast

from admission.models import AuditEvent, partitions
from admission.models.audit_event import PIECE
from admission.record.filters import AuditEventFilter
from admission.record.search.query import parse
from admission.replay.recorded import PastDecision
from engine.wire import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.models import AuditEventQuerySet, Replay

MOST_IDS: Final = 500
_OLD: Final = "old_request_text"
_COLUMNS: Final = (*PastDecision._fields[:-1], "document", _OLD)


class QueryError(ValueError):
    """A query of the record that cannot be understood; ``faults`` are sentences."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(" ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayScope:
    """Decisions of a cluster in a time; without ``namespaces`` those of all, without ``ids`` too.

    ``query`` is in the search language of the record.
    """

    cluster: str
    since: datetime
    until: datetime
    namespaces: tuple[str, ...] = ()
    query: str = ""
    ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, replay: Replay) -> ReplayScope:
        """The scope of a stored replay."""
        return cls(
            cluster=replay.cluster,
            since=replay.since,
            until=replay.until,
            namespaces=tuple(replay.namespaces),
            query=replay.query,
            ids=tuple(replay.decisions),
        )

    def rows(self) -> AuditEventQuerySet:
        """The decisions; raises ``QueryError``."""
        rows = AuditEvent.objects.for_cluster(self.cluster).between(self.since, self.until)
        if self.namespaces:
            rows = rows.filter(namespace__in=self.namespaces)
        if self.ids:
            rows = rows.filter(id__in=self.ids)
        return _matching(rows, self.query) if self.query else rows

    def count(self) -> int:
        """How many there are."""
        rows = self.rows()
        return sum(rows.between(*day).order_by().count() for day in self._days())

    def pieces(self) -> Iterator[list[PastDecision]]:
        """All of them in pieces, oldest first: a day's partition after the other."""
        rows = self.rows().annotate(**{_OLD: Cast("old_request", TextField())})
        for day in self._days():
            of_day, last = rows.between(*day).order_by("created", "id"), ""
            while True:
                following = of_day.newer_than(last) if last else of_day
                rows_read = following.values_list(*_COLUMNS)[:PIECE]
                piece = [
                    PastDecision._make(
                        [*columns, dumps(document["request"]) if document else old_text]
                    )
                    for *columns, document, old_text in rows_read
                ]
                if piece:
                    yield piece
                if len(piece) < PIECE:
                    break
                last = piece[-1].id

    def _days(self) -> Iterator[tuple[datetime, datetime]]:
        """The time of the scope, a day at once."""
        begin = self.since.astimezone(UTC)
        while begin < self.until:
            end = min(partitions.bounds(begin.date())[1], self.until)
            yield begin, end
            begin = end


def check_query(text: str) -> None:
    """Raise ``QueryError`` for a query that cannot be understood."""
    _matching(AuditEvent.objects.none(), text)


def _matching(rows: AuditEventQuerySet, text: str) -> AuditEventQuerySet:
    fields, faults = parse(text)
    search = AuditEventFilter(fields, queryset=rows)
    if not search.is_valid():
        faults += [str(fault) for found in search.errors.values() for fault in found]
    if faults:
        raise QueryError(faults)
    matching: AuditEventQuerySet = search.qs
    return matching


def days_back(days: int, *, until: datetime) -> datetime:
    """The beginning of the last days."""
    return until - timedelta(days=days)
