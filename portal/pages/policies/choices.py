"""What the list of policies offers to choose: tabs of kinds, facets, heads of columns that sort."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from engine.policy import Enforcement
from policies.drafts.kinds import PRIORITY_CLASS
from portal.pages.policies.selection import PORTAL_ONLY

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from portal.pages.policies.selection import Asked, PolicyCounts

SHOWN: Final = 5
MOST_CHOICES: Final = 60
"""Of the namespaces, those with the most policies; the search finds the others."""
_STATES: Final = (
    "in-sync", "drifted", "conflict", "writing", "paused", "held", "unowned", PORTAL_ONLY,
)  # fmt: skip
_FACETS: Final = ("mode", "cluster", "namespace", "sync", "user", "label")
_TABS: Final = (
    ("", "All"),
    ("LimitRange", "LimitRanges"),
    ("MetadataPolicy", "MetadataPolicies"),
    ("ResourceQuota", "ResourceQuotas"),
    (PRIORITY_CLASS.name, "PriorityClasses"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoice:
    """A value of a field with its number, and the query that chooses it, or no longer does."""

    label: str
    number: int
    query: str
    is_chosen: bool


class ListFacet(NamedTuple):
    """A field beside the list, its choices, and those that are only shown when asked for."""

    name: str
    title: str
    choices: Sequence[FilterChoice]
    more: Sequence[FilterChoice] = ()
    is_closed: bool = False
    """Whether it opens only when asked to; its title then has the number of values."""
    number: int = 0


def query_of(asked: Asked, **other: str) -> str:
    """The address of the list with other fields; it begins at the first page."""
    fields = {**asdict(asked), **other}
    return urlencode({name: value for name, value in fields.items() if value})


def tabs_of(asked: Asked, counts: PolicyCounts) -> list[FilterChoice]:
    """All policies, each kind, and priority classes where there are any."""
    numbers = counts.of_kinds()
    shown = [
        tab for tab in _TABS if tab[0] != PRIORITY_CLASS.name or tab[0] in (asked.kind, *numbers)
    ]
    return [
        FilterChoice(
            label=label,
            number=numbers[kind],
            query=query_of(asked, kind=kind),
            is_chosen=kind == asked.kind,
        )
        for kind, label in shown
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetFigures:
    """The numbers beside the list."""

    counts: PolicyCounts
    by_user: Counter[str]
    by_label: Counter[str]


def facets_of(asked: Asked, figures: FacetFigures, clusters: Sequence[str]) -> list[ListFacet]:
    """The fields beside the list; none without a choice."""
    counts = figures.counts
    modes, by_cluster, by_state = (counts.by_field[name] for name in ("mode", "cluster", "sync"))
    facets = [
        _facet(asked, "mode", "Mode", [(mode.value, modes[mode.value]) for mode in Enforcement])
    ]
    numbers = [(name, by_cluster[name]) for name in clusters if by_cluster[name]]
    if len(clusters) > 1 and numbers:
        facets.append(_facet(asked, "cluster", "Cluster", numbers))
    facets += _long_facet(asked, "namespace", "Namespace", counts.by_field["namespace"])
    states = [
        (state, by_state[state]) for state in _STATES if by_state[state] or state == asked.sync
    ]
    if states:
        facets.append(_facet(asked, "sync", "Sync", states))
    for name, title, found in (
        ("user", "Changed by", figures.by_user),
        ("label", "Label", figures.by_label),
    ):
        facets += [
            facet._replace(is_closed=not getattr(asked, name))
            for facet in _long_facet(asked, name, title, found)
        ]
    return facets


def filters_chosen(asked: Asked) -> int:
    """How many facets are in force, those whose value no policy has included."""
    return sum(bool(getattr(asked, name)) for name in _FACETS)


def _long_facet(asked: Asked, name: str, title: str, numbers: Counter[str]) -> list[ListFacet]:
    """A field with many values, those with the most policies first; none without a value."""
    found = _most_first(getattr(asked, name), numbers)
    if not found:
        return []
    facet = _facet(asked, name, title, found[:MOST_CHOICES])
    choices, more = facet.choices[:SHOWN], facet.choices[SHOWN:]
    return [facet._replace(choices=choices, more=more, number=len(found))]


def _most_first(chosen: str, numbers: Counter[str]) -> list[tuple[str, int]]:
    """The names with their numbers, the chosen one before all; of none that is empty."""
    found = [(name, number) for name, number in numbers.items() if name]
    return sorted(found, key=lambda each: (each[0] != chosen, -each[1], each[0]))


def _facet(asked: Asked, name: str, title: str, numbers: Sequence[tuple[str, int]]) -> ListFacet:
    return ListFacet(
        name, title, [_choice(asked, name, value, number) for value, number in numbers]
    )


def _choice(asked: Asked, name: str, value: str, number: int) -> FilterChoice:
    is_chosen = getattr(asked, name) == value
    query = query_of(asked, **{name: "" if is_chosen else value})
    return FilterChoice(label=value, number=number, query=query, is_chosen=is_chosen)
