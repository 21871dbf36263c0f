"""SearchPage: DecisionLines grouped by owner, PagePosition, Cursors to newer and older lines.

The two calls of a request become one line, and so do objects of one owner that were refused for the
same reasons. A page is named by the decision id before which its stretch of rows begins, and by how
many of the lines of that stretch come before it. The record only grows at its newer end: such a
name stays true.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from admission.models import Verdict, decision_id
from admission.record.narrative import summary
from admission.record.search.calls import other_calls, stronger
from admission.record.search.facets import with_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from admission.models import AuditEvent
    from admission.record.search.search import Sample, Sampled, Search

SIZE: Final = 50
Cursor = dict[str, str]
LISTED: Final = 20
"""Names of repeated refusals that a line lists; a link finds the others."""


@dataclass(slots=True, kw_only=True)
class DecisionLine:
    """One line of the list: a request by its stronger decision, and earlier ones that are like it.

    ``other`` is the decision about the request's other call. ``calls`` counts all decisions.
    """

    newest: Sampled
    other: Sampled | None = None
    alike: list[Sampled] = field(default_factory=list)
    calls: int = 1
    event: AuditEvent | None = None
    other_event: AuditEvent | None = None

    @property
    def first_id(self) -> str:
        """The id of the newest decision, which is where the line stands in the list."""
        return max(self.newest.id, self.other.id) if self.other else self.newest.id

    @property
    def ids(self) -> Sequence[str]:
        """The decisions that the line shows."""
        return (self.newest.id, self.other.id) if self.other else (self.newest.id,)

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        return summary(self.event) if self.event else ""

    @property
    def number(self) -> int:
        """How many requests the line stands for."""
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


def grouped(rows: Sequence[Sampled]) -> list[DecisionLine]:
    """Group calls by request, and repeated refusals under the newest of them."""
    lines: list[DecisionLine] = []
    line_of_refusal: dict[tuple[object, ...], DecisionLine] = {}
    for row, other in _requests(rows):
        calls = 2 if other else 1
        refusal = (row.cluster, row.namespace, row.kind, row.phase, row.owner, row.reasons)
        is_repeatable = row.verdict == Verdict.DENIED and bool(row.owner)
        if is_repeatable and refusal in line_of_refusal:
            line = line_of_refusal[refusal]
            line.alike.append(row)
            line.calls += calls
            continue
        lines.append(line := DecisionLine(newest=row, other=other, calls=calls))
        if is_repeatable:
            line_of_refusal[refusal] = line
    return lines


def _requests(rows: Sequence[Sampled]) -> Iterator[tuple[Sampled, Sampled | None]]:
    """Each request once, where its newest call stands: the call that decided, and the other."""
    others = other_calls(rows)
    told: set[str] = set()
    for row in rows:
        if row.id in told:
            continue
        other = others.get(row.id)
        if other is None:
            yield row, None
            continue
        told.add(other.id)
        decided = stronger(row, other)
        yield decided, other if decided is row else row


def read_events(search: Search, lines: Sequence[DecisionLine]) -> None:
    """Read the decisions that lines show; one statement."""
    events = search.events(line_id for line in lines for line_id in line.ids)
    for line in lines:
        line.event = events.get(line.newest.id)
        line.other_event = events.get(line.other.id) if line.other else None


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
    def ends_before(self) -> bool:
        """Whether only the end of the page is known: it is the one before another page."""
        return bool(self.before and not self.after)

    @property
    def is_first(self) -> bool:
        """Whether it is the page of the newest rows."""
        return self == PagePosition()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Some lines of the ``number`` of a sample, and cursors to the pages beside; empty: none."""

    sample: Sample
    lines: Sequence[DecisionLine]
    number: int
    newer: Cursor
    older: Cursor


def page(search: Search, position: PagePosition) -> SearchPage:
    """Read a stretch, and cut the page out of it; three statements, or five for ``after``."""
    before = search.ahead(position.after) if position.after else position.before
    sample = search.sample(before)
    lines = grouped(sample.rows)
    first_line = position.line
    if position.after:
        first_line = max(0, sum(line.first_id > position.after for line in lines) - SIZE)
    next_line = first_line + SIZE
    shown = lines[first_line:next_line]
    newer: Cursor = {}
    if first_line:
        newer = _line_cursor(sample, max(0, first_line - SIZE))
    elif sample.before:
        newer = {"after": sample.rows[0].id if sample.rows else sample.before}
    older_sample = {"before": sample.older} if sample.older else {}
    read_events(search, shown)
    return SearchPage(
        sample=sample,
        lines=[line for line in shown if line.event],  # retention may have removed others since
        number=len(lines),
        newer=newer,
        older=_line_cursor(sample, next_line) if next_line < len(lines) else older_sample,
    )


def stretch(search: Search, position: PagePosition) -> SearchPage:
    """A stretch of rows without lines, and the stretches beside it."""
    sample = search.sample(search.ahead(position.after) if position.after else position.before)
    newer = {"after": sample.rows[0].id if sample.rows else sample.before} if sample.before else {}
    older = {"before": sample.older} if sample.older else {}
    return SearchPage(sample=sample, lines=[], number=0, newer=newer, older=older)


def oldest_page(search: Search, position: PagePosition) -> SearchPage:
    """The same, the oldest lines first: a stretch after a decision id, and its lines from there."""
    beginning = search.beginning
    ends = position.ends_before
    after = search.behind(position.before) if ends else position.after
    after = max(beginning, min(after, decision_id.lowest(datetime.now(UTC))))
    sample = search.following(after, position.before)
    if after == beginning:
        sample = replace(sample, older="")
    if ends:
        searched_to = decision_id.moment(after) if sample.older else None
        sample = replace(sample, searched_to=searched_to)
    lines = grouped(sample.rows)[::-1]
    first_line = max(0, len(lines) - 1) // SIZE * SIZE if ends else position.line
    next_line = first_line + SIZE
    shown = lines[first_line:next_line]
    read_events(search, shown)
    newer: Cursor = {}
    if next_line < len(lines):
        newer = {"after": after, **_line_cursor(sample, next_line)}
    elif sample.before:
        newer = {"after": decision_id.highest_before(decision_id.moment(sample.before))}
    older: Cursor = {}
    if first_line:
        older = {"after": after, **_line_cursor(sample, max(0, first_line - SIZE))}
    elif sample.older:
        older = {"before": _next_moment(decision_id.moment(after))}
    return SearchPage(
        sample=sample,
        lines=[line for line in shown if line.event],
        number=len(lines),
        newer=newer,
        older=older,
    )


def _next_moment(moment: datetime) -> str:
    return decision_id.lowest(moment + timedelta(milliseconds=1))


def _line_cursor(sample: Sample, line_number: int) -> Cursor:
    """A cursor into this stretch that stays valid when newer decisions arrive."""
    before = sample.before
    if not before:
        before = _next_moment(sample.rows[0].created)
    return {"before": before, "line": str(line_number) if line_number else ""}
