"""SearchPage: DecisionLines grouped by owner, PagePosition, Cursors to newer and older lines.

Objects of one owner that were refused for the same reasons become one line. A page is named by the
decision id before which its stretch of rows begins, and by how many of the lines of that stretch
come before it. The record only grows at its newer end: such a name stays true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from admission.models import Verdict, decision_id
from admission.record.narrative import summary
from admission.record.search.facets import with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.models import AuditEvent
    from admission.record.search.search import Sample, Sampled, Search

SIZE: Final = 50
Cursor = dict[str, str]
LISTED: Final = 20
"""Names of repeated refusals that a line lists; a link finds the others."""


@dataclass(slots=True, kw_only=True)
class DecisionLine:
    """One line of the list: a decision, and earlier ones that are like it."""

    newest: Sampled
    alike: list[Sampled] = field(default_factory=list)
    event: AuditEvent | None = None

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        return summary(self.event) if self.event else ""

    @property
    def number(self) -> int:
        """How many decisions the line stands for."""
        return len(self.alike) + 1

    @property
    def listed(self) -> Sequence[Sampled]:
        """The newest of the repeated refusals."""
        return self.alike[:LISTED]

    @property
    def since(self) -> Sampled:
        """The oldest of them that was read."""
        return self.alike[-1] if self.alike else self.newest

    @property
    def query(self) -> str:
        """The query that finds all of them, on any page."""
        row = self.newest
        line_fields = {"cluster": row.cluster, "namespace": row.namespace, "kind": row.kind}
        name = f"{row.owner.name}-" if row.owner.name else row.name
        reason = "".join(row.reasons.split()[:1])
        return with_fields(line_fields, verdict="denied", name=name, reason=reason)


def grouped(rows: Iterable[Sampled]) -> list[DecisionLine]:
    """Group repeated refusals under the newest of them; every other row is a line of its own."""
    lines: list[DecisionLine] = []
    line_of_refusal: dict[tuple[object, ...], DecisionLine] = {}
    for row in rows:
        if row.verdict != Verdict.DENIED or not row.owner:
            lines.append(DecisionLine(newest=row))
            continue
        refusal = (row.cluster, row.namespace, row.kind, row.phase, row.owner, row.reasons)
        if refusal in line_of_refusal:
            line_of_refusal[refusal].alike.append(row)
        else:
            lines.append(line := DecisionLine(newest=row))
            line_of_refusal[refusal] = line
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePosition:
    """The position of a page: ``line`` of the stretch at ``before``, or the rows ``after``."""

    before: str = ""
    line: int = 0
    after: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PagePosition:
        """Read the position from a query; ignore parts that cannot be read."""
        before, after, line = (query.get(name, "") for name in ("before", "after", "line"))
        return cls(
            before=before if decision_id.is_decision_id(before) else "",
            line=int(line) if line.isascii() and line.isdecimal() and len(line) < 6 else 0,  # noqa: PLR2004 - more than ever fit
            after=after if decision_id.is_decision_id(after) else "",
        )

    @property
    def is_first(self) -> bool:
        """Whether it is the page of the newest rows."""
        return self == PagePosition()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Some lines, and cursors to the pages beside; empty where there is none."""

    sample: Sample
    lines: Sequence[DecisionLine]
    newer: Cursor
    older: Cursor


def page(search: Search, position: PagePosition) -> SearchPage:
    """Read a stretch, and cut the page out of it; three statements, or five for ``after``."""
    before = search.ahead(position.after) if position.after else position.before
    sample = search.sample(before)
    lines = grouped(sample.rows)
    first_line = position.line
    if position.after:
        first_line = max(0, sum(line.newest.id > position.after for line in lines) - SIZE)
    next_line = first_line + SIZE
    shown = lines[first_line:next_line]
    newer: Cursor = {}
    if first_line:
        newer = _line_cursor(sample, max(0, first_line - SIZE))
    elif sample.before:
        newer = {"after": sample.rows[0].id if sample.rows else sample.before}
    older_sample = {"before": sample.older} if sample.older else {}
    events = search.events(line.newest.id for line in shown)
    for line in shown:
        line.event = events.get(line.newest.id)
    return SearchPage(
        sample=sample,
        lines=[line for line in shown if line.event],  # retention may have removed others since
        newer=newer,
        older=_line_cursor(sample, next_line) if next_line < len(lines) else older_sample,
    )


def _line_cursor(sample: Sample, line_number: int) -> Cursor:
    """A cursor into this stretch that stays valid when newer decisions arrive."""
    before = sample.before
    if not before:
        before = decision_id.lowest(sample.rows[0].created + timedelta(milliseconds=1))
    return {"before": before, "line": str(line_number) if line_number else ""}
