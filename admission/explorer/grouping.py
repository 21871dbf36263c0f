"""Refusals that repeat: one owner's pods, refused for the same reasons, become one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from admission.explorer.facets import with_fields
from admission.narrative import summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from admission.models import AuditEvent


@dataclass(slots=True, kw_only=True)
class Row:
    """One line of the list: a decision, and earlier ones that are like it."""

    event: AuditEvent
    alike: list[AuditEvent] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """Why it came out so, in a few words."""
        return summary(self.event)

    @property
    def number(self) -> int:
        """How many decisions the line stands for."""
        return len(self.alike) + 1

    @property
    def query(self) -> str:
        """The query that shows all of them, on whichever page they are."""
        event = self.event
        fields = {"cluster": event.cluster, "namespace": event.namespace, "kind": event.kind}
        reason = event.reasons.split()[:1]
        named = _maker(event) or event.name
        return with_fields(fields, verdict="denied", name=named, reason="".join(reason))


def grouped(events: Iterable[AuditEvent]) -> list[Row]:
    """Put repeated refusals under the newest of them; all else stays a line of its own."""
    rows: list[Row] = []
    known: dict[tuple[str, ...], Row] = {}
    for event in events:
        key = _key(event)
        if key and key in known:
            known[key].alike.append(event)
            continue
        rows.append(Row(event=event))
        if key:
            known[key] = rows[-1]
    return rows


def _key(event: AuditEvent) -> tuple[str, ...]:
    """What repeated refusals have in common; empty for what is none, or has no owner."""
    if event.allowed:
        return ()
    owner = _owner(event) or _maker(event)
    if not owner:
        return ()
    return (event.cluster, event.namespace, event.kind, event.phase, owner, event.reasons)


def _metadata(event: AuditEvent) -> dict[str, Any]:
    judged = event.request.get("object")
    metadata = judged.get("metadata") if isinstance(judged, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _owner(event: AuditEvent) -> str:
    owners = _metadata(event).get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller"):
            return str(owner.get("uid") or owner.get("name") or "")
    return ""


def _maker(event: AuditEvent) -> str:
    """The beginning of the names that a controller gives."""
    made = _metadata(event).get("generateName")
    return made if isinstance(made, str) else ""
