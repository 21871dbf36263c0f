"""DenialCause: who was denied most and why, by owner, and whether it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent, decision_id
from admission.record import owners
from portal.pages.decisions.words import short_reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from admission.models import AuditEventQuerySet

READ: Final = 2_000
"""The newest denials, which stand for all of a window that has more."""
SHOWN: Final = 8
_GROWN: Final = 1.5


@dataclass(slots=True)
class DenialCause:
    """Denials of one owner for the same reasons: their ids, the newest one's first, its words."""

    cluster: str
    namespace: str
    kind: str
    owner: str
    reasons: str
    decisions: list[str] = field(default_factory=list)
    words: str = ""
    trend: str = ""

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.decisions)

    @property
    def decision(self) -> str:
        """The newest one."""
        return self.decisions[0]

    @property
    def query(self) -> dict[str, str]:
        """Finds its decisions in the record."""
        reason = next(iter(self.reasons.split()), "")
        place = {"cluster": self.cluster, "namespace": self.namespace}
        return {**place, "verdict": "denied", "reason": reason}


@dataclass(frozen=True, slots=True)
class TopCauses:
    """The most frequent ones; ``is_sampled``: among the newest denials alone."""

    causes: Sequence[DenialCause]
    is_sampled: bool


def top_causes(decisions: AuditEventQuerySet, since: datetime, now: datetime) -> TopCauses:
    """Group the denials since then; two queries."""
    # An id has the time of its decision, and costs less to read than a moment.
    rows: Any = decisions.denied().values_list(
        "cluster", "namespace", "kind", "name", "reasons", "id"
    )
    newest = rows.newest(READ, since=since)
    found: dict[tuple[str, ...], DenialCause] = {}
    for cluster, namespace, kind, name, reasons, decision in newest:
        key = (cluster, namespace, kind, owners.named(name.rstrip("-")), reasons)
        if key not in found:
            found[key] = DenialCause(*key)
        found[key].decisions.append(decision)
    top = sorted(found.values(), key=lambda cause: -cause.number)[:SHOWN]
    is_sampled = len(newest) == READ
    _add_words(top)
    begin = decision_id.moment(newest[-1][-1]) if is_sampled else since
    for cause in top:
        cause.trend = _trend(cause.decisions, begin, now)
    return TopCauses(top, is_sampled)


def _add_words(causes: Sequence[DenialCause]) -> None:
    """Say why, and what kind of owner it is, from the newest decision of each."""
    if not causes:
        return
    newest = [cause.decision for cause in causes]
    oldest = decision_id.moment(min(newest))
    events = AuditEvent.objects.filter(created__gte=oldest, id__in=newest)
    event_by_id = {event.id: event for event in events}
    for cause in causes:
        event = event_by_id.get(cause.decision)
        if event is None:
            continue
        cause.words = short_reason(event)
        owner = owners.of_decision(event)
        if owner.name:
            cause.owner, cause.kind = owner.name, owner.kind or cause.kind


def _trend(decisions: Sequence[str], since: datetime, now: datetime) -> str:
    """Once, new, growing, falling or steady: the later half of the time against the earlier."""
    if len(decisions) == 1:
        return "once"
    middle = decision_id.lowest(since + (now - since) / 2)
    quarter = decision_id.lowest(now - (now - since) / 4)
    if min(decisions) >= quarter:
        return "new"
    later = sum(each >= middle for each in decisions)
    earlier = len(decisions) - later
    if later > earlier * _GROWN:
        return "growing"
    return "falling" if later * _GROWN < earlier else "steady"
