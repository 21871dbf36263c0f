"""Columns of the list of policies: which are shown, what sorts by them, and menus to choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from portal.pages.policies.choices import FilterChoice, query_of
from portal.pages.policies.selection import GROUPS

if TYPE_CHECKING:
    from collections.abc import Collection

    from portal.pages.policies.selection import Asked


class ListColumn(NamedTuple):
    """A column; the name sorts by it where ``sorts``, ``look`` is of its cells."""

    name: str
    label: str
    look: str = ""
    sorts: bool = True


COLUMNS: Final = (
    ListColumn("name", "Name"),
    ListColumn("namespace", "Namespace"),
    ListColumn("cluster", "Cluster", "only-wide"),
    ListColumn("labels", "Labels", "only-wide", sorts=False),
    ListColumn("mode", "Mode"),
    ListColumn("version", "Version", "figure only-wide"),
    ListColumn("changed", "Last change", "only-wide"),
    ListColumn("denials", "Denials 24 h", "figure"),
    ListColumn("sync", "Sync", "only-wide", sorts=False),
)
"""In their order on the page."""
_ALWAYS: Final = "name"
_USUAL: Final = tuple(column.name for column in COLUMNS if column.name != "labels")
_GROUP_WORDS: Final = {"": "none", "namespace": "namespace", "kind": "kind", "cluster": "cluster"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnHead:
    """The head of a column; ``sorted`` is a value of ``aria-sort``, or empty."""

    name: str
    label: str
    query: str
    sorted: str
    look: str = ""


def shown_columns(asked: Asked) -> frozenset[str]:
    """The names of the columns that the address asks for, or of those that are usual."""
    known = {column.name for column in COLUMNS}.intersection(asked.columns.split())
    return frozenset({_ALWAYS, *known}) if known else frozenset(_USUAL)


def column_choices(asked: Asked) -> list[FilterChoice]:
    """Each column but the name, and the address that shows it, or no longer does."""
    shown = shown_columns(asked)
    return [
        FilterChoice(
            label=column.label,
            number=0,
            query=query_of(asked, columns=_written(shown ^ {column.name})),
            is_chosen=column.name in shown,
        )
        for column in COLUMNS
        if column.name != _ALWAYS
    ]


def group_choices(asked: Asked) -> list[FilterChoice]:
    """Nothing, or a column, by whose values the rows stand together."""
    return [
        FilterChoice(
            label=_GROUP_WORDS[group],
            number=0,
            query=query_of(asked, group=group),
            is_chosen=asked.group == group,
        )
        for group in ("", *GROUPS)
    ]


def heads_of(asked: Asked) -> list[ColumnHead]:
    """The heads of the columns that are shown."""
    shown = shown_columns(asked)
    return [_head(asked, column) for column in COLUMNS if column.name in shown]


def _written(names: Collection[str]) -> str:
    """The names as an address has them, in the order of the page; empty for the usual ones."""
    chosen = [column.name for column in COLUMNS if column.name in names]
    return "" if tuple(chosen) == _USUAL else " ".join(chosen)


def _head(asked: Asked, column: ListColumn) -> ColumnHead:
    """Sorts by a column, and turns the order round where it sorts already."""
    name, is_sorted = column.name, asked.sorted_by == column.name
    if name == "denials":
        order, direction = "", "descending"  # most first: the other way round is of no use
    else:
        # Of versions and times the newest are of interest first.
        begins = "-" if name in {"version", "changed"} else ""
        order = f"{'' if asked.is_turned else '-'}{name}" if is_sorted else f"{begins}{name}"
        direction = "descending" if asked.is_turned else "ascending"
    return ColumnHead(
        name=name,
        label=column.label,
        query=query_of(asked, order=order) if column.sorts else "",
        sorted=direction if is_sorted else "",
        look=column.look,
    )
