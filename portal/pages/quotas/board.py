"""QuotaBoardView: QuotasInPlaces in rows, priority classes in columns, worst Levels in cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator

from policies import roles, snapshot
from policies.ledger.usage import (
    NEAR,
    Level,
    classes_named,
    counts_class,
    worst,
)
from policies.models import PriorityClass
from policies.snapshot.quota_levels import visible_quotas
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.snapshot.quota_levels import QuotasInPlace

PAGE_SIZE: Final = 25
CLASS_COLUMNS: Final = 8
"""Priority classes that have a column; choosing a cluster shows its own."""


@dataclass(frozen=True, slots=True)
class BoardCell:
    """The worst level among the quotas that count a pod of one priority class."""

    column: str
    title: str
    level: Level | None


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One line of the board."""

    place: QuotasInPlace
    cells: Sequence[BoardCell]


class QuotaBoardView(PortalPage):
    """All namespaces with quotas that the reader may see, a page at a time."""

    template_name = "quotas/board.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of rows; a fixed number of queries for any number of namespaces."""
        board_query = self.request.GET
        cluster_name, only = board_query.get("cluster", ""), board_query.get("needs") == "attention"
        user = self.request.user
        clusters = {
            name: cluster_policies
            for name, cluster_policies in snapshot.refresh().clusters.items()
            if roles.sees(user, name)
        }
        on_board = {cluster_name: clusters[cluster_name]} if cluster_name in clusters else clusters
        search = board_query.get("q", "").replace("\0", "").strip()
        board = visible_quotas(on_board, user, search=search)
        needy = [ns for ns in board if ns.worst.needs_attention]
        shown = sorted(needy, key=lambda ns: ns.worst.rank, reverse=True) if only else board
        page = Paginator(shown, PAGE_SIZE).get_page(board_query.get("page"))
        class_columns, left_out = columns_of(list(on_board), board)
        return super().get_context_data(
            **kwargs,
            rows=[row_of(ns, class_columns) for ns in page],
            columns=[(column, title_of(column)) for column in class_columns],
            left_out=left_out,
            page=page,
            total=len(board),
            attention=len(needy),
            near=NEAR,
            only=only,
            search=search,
            cluster=cluster_name if cluster_name in clusters else "",
            clusters=sorted(clusters),
        )


def columns_of(clusters: Sequence[str], places: Sequence[QuotasInPlace]) -> tuple[list[str], int]:
    """The priority classes by value, then others that quotas name; and how many are left out."""
    known_classes = (
        PriorityClass.objects.filter(cluster__name__in=clusters)
        .order_by("-value", "name")
        .values_list("name", flat=True)
    )
    named_classes: set[str] = set()
    for place in places:
        for quota, _ in place.quotas:
            if quota.scope_selector:
                named_classes |= classes_named(quota)
    class_columns = list(dict.fromkeys(known_classes))
    # Classes that some quota names come first: those are of interest on this board.
    class_columns.sort(key=lambda name: name not in named_classes)
    class_columns += sorted(named_classes.difference(class_columns))
    return ["", *class_columns[:CLASS_COLUMNS]], max(0, len(class_columns) - CLASS_COLUMNS)


def title_of(column: str) -> str:
    """What a column is called."""
    return column or "no class"


def row_of(place: QuotasInPlace, columns: Sequence[str]) -> BoardRow:
    """One line: a cell for each column."""
    board_cells = []
    for column in columns:
        level = worst(level for quota, level in place.quotas if counts_class(quota, column))
        board_cells.append(BoardCell(column, title_of(column), level))
    return BoardRow(place, board_cells)
