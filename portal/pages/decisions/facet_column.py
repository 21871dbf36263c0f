"""The column beside the log: facets in the order of the page, the verdicts as the legend."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from admission.record.search.facets import FIELD_VALUES, Facet, facets, with_fields
from admission.record.search.words import EXCLUDE, TIMES, without, words_of
from portal.pages.decisions.words import short_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from admission.record.search.facets import FacetValue
    from admission.record.search.search import Sampled

_ORDER: Final = (
    "namespace", "reason", "user", "cluster", "kind", "policy", "priority", "phase", "dry_run",
)  # fmt: skip
_OPEN: Final = frozenset({"namespace", "reason"})
_VERDICTS: Final = ("denied", "would-deny", "mutated", "allowed")
"""In the order of the plot's bars, from the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEntry:
    """A value in its short form; ``swatch`` is the verdict whose colour stands beside it.

    The query of a chosen or excluded value is the one without it.
    """

    label: str
    number: int
    query: str
    is_chosen: bool = False
    is_excluded: bool = False
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


def facet_column(rows: Sequence[Sampled], query: Mapping[str, str]) -> list[ColumnFacet]:
    """The verdicts, whichever there are, and the facets that narrow the search or exclude."""
    found = {facet.name: facet for facet in facets(rows, query)}
    left_out = {name: _exclusions(name, query) for name in FIELD_VALUES}
    others = (
        _column_facet(found.get(name) or _bare(name), left_out[name])
        for name in _ORDER
        if name in found or left_out[name]
    )
    return [*_verdicts(rows, query, left_out["verdict"]), *others]


def filters_chosen(fields: Mapping[str, str]) -> int:
    """How many filters are in force: each field, and each exclusion; the time is none of them."""
    chosen = [name for name, text in fields.items() if text and name not in {*TIMES, EXCLUDE}]
    return len(chosen) + len(list(words_of(fields.get(EXCLUDE, ""))))


def _bare(name: str) -> Facet:
    return Facet(name=name, title=FIELD_VALUES[name][0], entries=())


def _verdicts(
    rows: Sequence[Sampled], query: Mapping[str, str], left_out: Sequence[ColumnEntry]
) -> Iterator[ColumnFacet]:
    chosen = query.get("verdict", "")
    if not (rows or chosen or left_out):
        return
    counts = Counter(row.outcome.value for row in rows)
    excluded = {entry.swatch: entry for entry in left_out}
    entries = [
        excluded.get(verdict)
        or ColumnEntry(
            label=verdict.replace("-", " "),
            number=counts[verdict],
            query=with_fields(query, verdict="" if verdict == chosen else verdict),
            is_chosen=verdict == chosen,
            swatch=verdict,
        )
        for verdict in _VERDICTS
    ]
    yield ColumnFacet(name="verdict", title="Verdict", entries=entries, is_open=True)


def _column_facet(facet: Facet, left_out: Sequence[ColumnEntry]) -> ColumnFacet:
    return ColumnFacet(
        name=facet.name,
        title=facet.title,
        entries=[*(_column_entry(facet.name, entry) for entry in facet.entries), *left_out],
        is_open=facet.name in _OPEN or facet.is_chosen or bool(left_out),
        rest=facet.rest,
    )


def _exclusions(name: str, query: Mapping[str, str]) -> Sequence[ColumnEntry]:
    """The values of a field that the query excludes."""
    words = query.get(EXCLUDE, "")
    return [
        ColumnEntry(
            label=_label(name, word.typed_value),
            number=0,
            query=with_fields(query, **{EXCLUDE: without(words, word)}),
            is_excluded=True,
            title=word.value if name == "user" else "",
            swatch=word.value if name == "verdict" else "",
        )
        for word in words_of(words)
        if word.field == name
    ]


def _column_entry(name: str, entry: FacetValue) -> ColumnEntry:
    label = _label(name, entry.label)
    return ColumnEntry(
        label=label,
        number=entry.number,
        query=entry.query,
        is_chosen=entry.is_chosen,
        title=entry.label if entry.label != label else "",
    )


def _label(name: str, value: str) -> str:
    if name == "verdict":
        return value.replace("-", " ")
    return short_user(value) if name == "user" else value
