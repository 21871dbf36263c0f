"""The column beside the log: facets in the order of the page, the verdicts as the legend."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from admission.record.search.facets import facets, with_fields
from portal.pages.decisions.words import short_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from admission.record.search.facets import Facet, FacetValue
    from admission.record.search.search import Sampled

_ORDER: Final = (
    "namespace", "reason", "user", "cluster", "kind", "policy", "priority", "phase", "dry_run",
)  # fmt: skip
_OPEN: Final = frozenset({"namespace", "reason"})
_VERDICTS: Final = ("denied", "would-deny", "mutated", "allowed")
"""In the order of the plot's bars, from the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEntry:
    """A value in its short form; ``swatch`` is the verdict whose colour stands beside it."""

    label: str
    number: int
    query: str
    is_chosen: bool
    title: str = ""
    """The whole value, where the label is a part of it."""
    swatch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacet:
    """One facet of the column; ``rest`` others are not shown."""

    name: str
    title: str
    entries: Sequence[ColumnEntry]
    is_open: bool
    rest: int = 0

    @property
    def number(self) -> int:
        """How many values there are."""
        return len(self.entries) + self.rest

    @property
    def is_chosen(self) -> bool:
        """Whether the query names this field already."""
        return any(entry.is_chosen for entry in self.entries)


def facet_column(rows: Sequence[Sampled], query: Mapping[str, str]) -> list[ColumnFacet]:
    """The verdicts, whichever there are, and the facets that narrow the search."""
    found = {facet.name: facet for facet in facets(rows, query)}
    others = (_column_facet(found[name]) for name in _ORDER if name in found)
    return [*_verdicts(rows, query), *others]


def _verdicts(rows: Sequence[Sampled], query: Mapping[str, str]) -> Iterator[ColumnFacet]:
    chosen = query.get("verdict", "")
    if not (rows or chosen):
        return
    counts = Counter(row.outcome.value for row in rows)
    entries = [
        ColumnEntry(
            label=verdict.replace("-", " "),
            number=counts[verdict],
            query=with_fields(query, verdict="" if verdict == chosen else verdict),
            is_chosen=verdict == chosen,
            swatch=verdict,
        )
        for verdict in _VERDICTS
    ]
    yield ColumnFacet(name="verdict", title="Verdict", entries=entries, is_open=True)


def _column_facet(facet: Facet) -> ColumnFacet:
    return ColumnFacet(
        name=facet.name,
        title=facet.title,
        entries=[_column_entry(facet.name, entry) for entry in facet.entries],
        is_open=facet.name in _OPEN or facet.is_chosen,
        rest=facet.rest,
    )


def _column_entry(name: str, entry: FacetValue) -> ColumnEntry:
    label = short_user(entry.label) if name == "user" else entry.label
    return ColumnEntry(
        label=label,
        number=entry.number,
        query=entry.query,
        is_chosen=entry.is_chosen,
        title=entry.label if entry.label != label else "",
    )
