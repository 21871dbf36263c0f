"""Group repeated refusals: objects of one owner, refused for the same reasons, become one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from admission.models import Verdict
from admission.record.narrative import summary
from admission.record.search.facets import with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from admission.models import AuditEvent
    from admission.record.search.sample import Sampled

LISTED: Final = 20
"""So many of those that are alike are named under the line; a link finds the others."""


@dataclass(slots=True, kw_only=True)
class DecisionLine:
    """One line of the list: a decision, and earlier ones that are like it."""

    newest: Sampled
    alike: list[Sampled] = field(default_factory=list)
    event: AuditEvent | None = None

    @property
    def summary(self) -> str:
        """Why it came out so, in a few words."""
        return summary(self.event) if self.event else ""

    @property
    def number(self) -> int:
        """How many decisions the line stands for."""
        return len(self.alike) + 1

    @property
    def listed(self) -> Sequence[Sampled]:
        """The newest of those that are alike."""
        return self.alike[:LISTED]

    @property
    def since(self) -> Sampled:
        """The first of them that was read."""
        return self.alike[-1] if self.alike else self.newest

    @property
    def query(self) -> str:
        """The query that shows all of them, on whichever page they are."""
        row = self.newest
        fields = {"cluster": row.cluster, "namespace": row.namespace, "kind": row.kind}
        name = f"{row.owner.name}-" if row.owner.name else row.name
        reason = "".join(row.reasons.split()[:1])
        return with_fields(fields, verdict="denied", name=name, reason=reason)


def grouped(rows: Iterable[Sampled]) -> list[DecisionLine]:
    """Put repeated refusals under the newest of them; all else stays a line of its own."""
    lines: list[DecisionLine] = []
    known: dict[tuple[object, ...], DecisionLine] = {}
    for row in rows:
        key = _key(row)
        if key and key in known:
            known[key].alike.append(row)
            continue
        lines.append(DecisionLine(newest=row))
        if key:
            known[key] = lines[-1]
    return lines


def _key(row: Sampled) -> tuple[object, ...]:
    """What repeated refusals have in common; empty for what is none, or has no owner."""
    if row.verdict != Verdict.DENIED or not row.owner:
        return ()
    return (row.cluster, row.namespace, row.kind, row.phase, row.owner, row.reasons)
