"""DenialCause: who was denied most and why, by owner, and whether it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent
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
    """Denials of one owner for the same reasons, the newest decision and its words."""

    cluster: str
    namespace: str
    kind: str
    owner: str
    reasons: str
    decision: str
    number: int = 0
    times: list[datetime] = field(default_factory=list)
    words: str = ""
    trend: str = ""

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
    denied = decisions.denied().filter(created__gte=since)
    rows: Any = denied.values_list(
        "cluster", "namespace", "kind", "name", "reasons", "id", "created"
    )
    newest = rows.newest(READ)
    found: dict[tuple[str, ...], DenialCause] = {}
    for cluster, namespace, kind, name, reasons, decision, created in newest:
        key = (cluster, namespace, kind, owners.named(name.rstrip("-")), reasons)
        cause = found.setdefault(key, DenialCause(*key, decision))
        cause.number += 1
        cause.times.append(created)
    top = sorted(found.values(), key=lambda cause: -cause.number)[:SHOWN]
    is_sampled = len(newest) == READ
    _add_words(top)
    for cause in top:
        cause.trend = _trend(cause.times, newest[-1][-1] if is_sampled else since, now)
    return TopCauses(top, is_sampled)


def _add_words(causes: Sequence[DenialCause]) -> None:
    """Say why, and what kind of owner it is, from the newest decision of each."""
    if not causes:
        return
    oldest = min(cause.times[0] for cause in causes)
    events = AuditEvent.objects.filter(
        created__gte=oldest, id__in=[cause.decision for cause in causes]
    )
    event_by_id = {event.id: event for event in events}
    for cause in causes:
        event = event_by_id.get(cause.decision)
        if event is None:
            continue
        cause.words = short_reason(event)
        metadata = ((event.request or {}).get("object") or {}).get("metadata") or {}
        owner = owners.recorded(metadata) if isinstance(metadata, dict) else owners.NOBODY
        if owner.name:
            cause.owner, cause.kind = owner.name, owner.kind or cause.kind


def _trend(times: Sequence[datetime], since: datetime, now: datetime) -> str:
    """Once, new, growing, falling or steady: the later half of the time against the earlier."""
    middle, quarter = since + (now - since) / 2, now - (now - since) / 4
    if len(times) == 1:
        return "once"
    if min(times) >= quarter:
        return "new"
    later = sum(moment >= middle for moment in times)
    earlier = len(times) - later
    if later > earlier * _GROWN:
        return "growing"
    return "falling" if later * _GROWN < earlier else "steady"
