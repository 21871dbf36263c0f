"""SortedHeadings of a list: a click sorts by one; the order asked for, the address of the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.http import QueryDict


@dataclass(frozen=True, slots=True)
class SortedHeading:
    """A heading; ``query`` sorts by it, and is empty where that is not offered."""

    label: str
    look: str
    query: str
    sorted: str


def order_of(asked: QueryDict, known: Mapping[str, object], *, usual: str) -> tuple[str, bool]:
    """The column to sort by, and whether downwards: ``?sort=-denied``; the usual one otherwise."""
    wanted = asked.get("sort", "") or usual
    name, is_down = wanted.removeprefix("-"), wanted.startswith("-")
    return (name, is_down) if name in known else (usual.removeprefix("-"), usual.startswith("-"))


def columns_of(
    headings: tuple[tuple[str, str, str], ...], asked: QueryDict, order: tuple[str, bool]
) -> Iterator[SortedHeading]:
    """The headings (key, label, look) with the address that sorts by each; none without a key."""
    now, is_down = order
    for key, label, look in headings:
        query = asked.copy()
        query.pop("page", None)
        is_now = key == now and bool(key)
        # Figures begin with the largest, names with the first.
        first = "-" if "figure" in look else ""
        query["sort"] = ("" if is_down else "-") + key if is_now else first + key
        state = ("descending" if is_down else "ascending") if is_now else ""
        yield SortedHeading(label, look, query.urlencode() if key else "", state)
