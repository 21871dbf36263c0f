"""Facets: Counter of each field's values in sampled rows, chosen or not, with a narrower query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.http import QueryDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from admission.record.search.search import Sampled

SHOWN: Final = 7
FIELD_VALUES: Final[dict[str, tuple[str, Callable[[Sampled], Iterable[str]]]]] = {
    "verdict": ("Verdict", lambda row: (row.outcome.value,)),
    "reason": ("Reason", lambda row: row.reasons.split()),
    "cluster": ("Cluster", lambda row: (row.cluster,)),
    "namespace": ("Namespace", lambda row: (row.namespace,)),
    "kind": ("Kind", lambda row: (row.kind,)),
    "user": ("User", lambda row: (row.user,)),
    "policy": ("Policy", lambda row: row.policy_names.split()),
    "priority": ("Priority class", lambda row: (row.priority,)),
    "phase": ("Phase", lambda row: (row.phase,)),
    "dry_run": ("Dry run", lambda row: ("true" if row.dry_run else "false",)),
}
"""The title of each field, and the values that a decision has of it."""
_VALUE_WORDS: Final = {
    ("dry_run", "true"): "yes",
    ("dry_run", "false"): "no",
    ("verdict", "would-deny"): "would deny",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetValue:
    """One value: how many rows have it, and the query with it, or without it if it is chosen."""

    label: str
    number: int
    query: str
    is_chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """The most frequent values of one field; ``rest`` others are not shown."""

    name: str
    title: str
    entries: tuple[FacetValue, ...]
    rest: int = 0

    @property
    def is_chosen(self) -> bool:
        """Whether the query names this field already."""
        return any(entry.is_chosen for entry in self.entries)


def facets(rows: Sequence[Sampled], query: Mapping[str, str]) -> list[Facet]:
    """Count all fields; one that cannot narrow the search, and is not chosen, is left out."""
    all_facets = []
    for name, (title, values) in FIELD_VALUES.items():
        counts = Counter(value for row in rows for value in values(row) if value)
        chosen = query.get(name, "")
        shown = [value for value, _ in counts.most_common(SHOWN)]
        if chosen:
            shown = [chosen, *(value for value in shown if value != chosen)]
        entries = tuple(
            FacetValue(
                label=_VALUE_WORDS.get((name, value), value),
                number=counts[value] if value in counts else _count_alike(name, counts, value),
                query=with_fields(query, **{name: "" if value == chosen else value}),
                is_chosen=value == chosen,
            )
            for value in shown
        )
        if chosen or len(entries) > 1:
            others = max(0, len(counts) - len(shown))
            all_facets.append(Facet(name=name, title=title, entries=entries, rest=others))
    return all_facets


def _count_alike(name: str, counts: Mapping[str, int], value: str) -> int:
    """Count as the filter matches: users by their beginning, policies by their name alone, too."""
    if name == "user":
        return sum(number for other, number in counts.items() if other.startswith(value))
    return sum(number for other, number in counts.items() if other.endswith(f"/{value}"))


def with_fields(query: Mapping[str, str], **fields: str) -> str:
    """The query string with other fields; empty ones are left out."""
    narrowed = QueryDict(mutable=True)
    for name, value in {**query, **fields}.items():
        if value:
            narrowed[name] = value
    return narrowed.urlencode()
