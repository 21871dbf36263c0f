"""Lists: ListColumns, SortedHeadings, the words searched for, a page of as many rows as asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from django.core.paginator import Page
    from django.db.models import QuerySet
    from django.http import HttpRequest, QueryDict

    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator

ROW_NUMBERS: Final = (25, 50, 100, 200)
"""The numbers of rows that a page may have."""
USUAL_ROWS: Final = 50
LONGEST_SEARCH: Final = 253
_ROWS: Final = "rows"


class ListPaginator(_Paginator):
    """A paginator that knows which other numbers of rows there are."""

    row_numbers = ROW_NUMBERS

    @property
    def is_short(self) -> bool:
        """Whether the smallest page holds all rows: there is nothing to choose."""
        return self.count <= self.row_numbers[0]


def page_of(found: Any, request: HttpRequest) -> Page[Any]:
    """The page that ``?page=`` asks for; it is as long as ``?rows=`` asked for last."""
    return ListPaginator(found, _rows_of(request)).get_page(request.GET.get("page"))


def _rows_of(request: HttpRequest) -> int:
    """The rows on a page; a choice lasts for the session, over all lists."""
    kept = request.session.get(_ROWS, USUAL_ROWS)
    asked = {str(number): number for number in ROW_NUMBERS}.get(request.GET.get(_ROWS, ""), kept)
    if asked != kept:
        request.session[_ROWS] = asked
    return int(asked)


def search_of(asked: QueryDict, name: str = "q") -> str:
    """The words that a list is searched for."""
    return asked.get(name, "").replace("\0", "").strip()[:LONGEST_SEARCH]


@dataclass(frozen=True, slots=True)
class SortedHeading:
    """A heading; ``query`` sorts by it, and is empty where that is not offered."""

    label: str
    look: str
    query: str
    sorted: str


def order_of(asked: QueryDict, known: Container[str], *, usual: str) -> tuple[str, bool]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumns:
    """What a list of stored rows is searched and sorted by.

    ``headings`` are (key, label, look); ``orders`` has the fields that each key sorts by.
    """

    headings: tuple[tuple[str, str, str], ...]
    orders: Mapping[str, tuple[Any, ...]]
    usual: str
    searched: tuple[str, ...]


def listed(rows: QuerySet[Any], request: HttpRequest, columns: ListColumns) -> dict[str, Any]:
    """The page of the rows that a person asks for, with ``search`` and ``columns`` beside it."""
    asked = request.GET
    search, order = search_of(asked), order_of(asked, columns.orders, usual=columns.usual)
    if search:
        rows = rows.filter(any_contains(search, *columns.searched))
    name, is_down = order
    rows = rows.order_by(*columns.orders[name])
    return {
        "page": page_of(rows.reverse() if is_down else rows, request),
        "search": search,
        "columns": list(columns_of(columns.headings, asked, order)),
    }


def any_contains(words: str, *fields: str) -> Q:
    """Whether one of these fields contains the words, in any case of letters."""
    found = Q()
    for field in fields:
        found |= Q(**{f"{field}__icontains": words})
    return found
