"""What the list of policies offers to choose: tabs of kinds, facets, heads of columns that sort."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from engine.policy import Enforcement
from policies.drafts.kinds import PRIORITY_CLASS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from portal.pages.policies.selection import Asked, PolicyCounts

_TABS: Final = (
    ("", "All"),
    ("LimitRange", "LimitRanges"),
    ("MetadataPolicy", "MetadataPolicies"),
    ("ResourceQuota", "ResourceQuotas"),
    (PRIORITY_CLASS.name, "PriorityClasses"),
)
_COLUMNS: Final = (
    # What sorts it, its label, its look.
    ("name", "Name", ""),
    ("namespace", "Namespace", ""),
    ("cluster", "Cluster", "only-wide"),
    ("mode", "Mode", ""),
    ("version", "Version", "figure only-wide"),
    ("changed", "Last change", "only-wide"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoice:
    """A value of a field with its number, and the query that chooses it, or no longer does."""

    label: str
    number: int
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnHead:
    """The head of a column; ``sorted`` is a value of ``aria-sort``, or empty."""

    label: str
    query: str
    sorted: str
    look: str = ""


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


def facets_of(
    asked: Asked, counts: PolicyCounts, clusters: Sequence[str]
) -> list[tuple[str, str, list[FilterChoice]]]:
    """The fields beside the list: name, title and choices; none without a choice."""
    modes, by_cluster = counts.of_modes(), counts.of_clusters()
    fields = [("mode", "Mode", [(mode.value, modes[mode.value]) for mode in Enforcement])]
    numbers = [(name, by_cluster[name]) for name in clusters if by_cluster[name]]
    if len(clusters) > 1 and numbers:
        fields.append(("cluster", "Cluster", numbers))
    return [
        (name, title, [_choice(asked, name, value, number) for value, number in values])
        for name, title, values in fields
    ]


def _choice(asked: Asked, name: str, value: str, number: int) -> FilterChoice:
    is_chosen = getattr(asked, name) == value
    query = query_of(asked, **{name: "" if is_chosen else value})
    return FilterChoice(label=value, number=number, query=query, is_chosen=is_chosen)


def heads_of(asked: Asked) -> list[ColumnHead]:
    """The heads of the columns that sort the list."""
    return [_head(asked, *column) for column in _COLUMNS]


def _head(asked: Asked, column: str, label: str, look: str) -> ColumnHead:
    """Sorts by a column, and turns the order round where it sorts already."""
    is_sorted = asked.sorted_by == column
    # Of versions and times the newest are of interest first.
    begins = "-" if column in {"version", "changed"} else ""
    is_turned = asked.is_turned
    order = f"{'' if is_turned else '-'}{column}" if is_sorted else f"{begins}{column}"
    direction = "descending" if is_turned else "ascending"
    return ColumnHead(
        label=label,
        query=query_of(asked, order=order),
        sorted=direction if is_sorted else "",
        look=look,
    )
