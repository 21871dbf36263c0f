"""RecentObjects: the newest recorded objects of a namespace, one of each owner and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.models.document import IN_DOCUMENT
from admission.record import owners
from admission.record.redaction import restore

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection

    from admission.models import AuditEvent, AuditEventQuerySet

READ: Final = 60
"""Decisions that are read: pods of one owner are alike."""
OFFERED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentObject:
    """An object on record: the decision about it, its kind, its owner's name or its own."""

    decision: str
    kind: str
    name: str
    verdict: str
    created: dt.datetime


def recent_objects(
    decisions: AuditEventQuerySet, kinds: Collection[str] | None = None
) -> list[RecentObject]:
    """The newest objects among these decisions, of these kinds or of all, for a choice."""
    of_kinds = decisions if kinds is None else decisions.filter(kind__in=kinds)
    created = of_kinds.filter(operation="CREATE", sub_resource="")
    found: dict[tuple[str, str, str], RecentObject] = {}
    columns = ("created", "kind", "name", "verdict", *IN_DOCUMENT)
    for event in created.only(*columns).newest_by_pieces(READ):
        recorded = object_of(event)
        if recorded is None:
            continue
        metadata = recorded.get("metadata")
        name = owners.name_of(event.name, metadata if isinstance(metadata, dict) else {})
        each = RecentObject(
            decision=event.id,
            kind=event.kind,
            name=name,
            verdict=event.verdict,
            created=event.created,
        )
        found.setdefault((event.kind, name, event.verdict), each)
        if len(found) == OFFERED:
            break
    return list(found.values())


def object_of(event: AuditEvent) -> dict[str, Any] | None:
    """The object of a decision as recorded; None where there is none, or where it was cut."""
    recorded = restore(event.request.get("object"))
    is_whole = isinstance(recorded, dict) and not event.is_cut
    return recorded if is_whole else None
