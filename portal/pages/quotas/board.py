"""QuotaBoardView: BoardNamespaces in rows, priority classes in columns, worst Levels in cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from json import loads
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import TextField
from django.db.models.functions import Cast

from policies import roles, snapshot
from policies.ledger.usage import (
    NEAR,
    Level,
    classes_named,
    counts_class,
    levels_of,
    worst,
)
from policies.models import PriorityClass, QuotaUsage
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.policy import ResourceQuota
    from policies.snapshot import ClusterPolicies

PAGE_SIZE: Final = 25
CLASS_COLUMNS: Final = 8
"""Priority classes that have a column; choosing a cluster shows its own."""


@dataclass(frozen=True, slots=True)
class BoardNamespace:
    """A namespace with its quotas and the worst level of each."""

    cluster: str
    namespace: str
    quotas: Sequence[tuple[ResourceQuota, Level]]

    @property
    def worst(self) -> Level:
        """The level that needs attention most."""
        return max((level for _, level in self.quotas), key=lambda level: level.rank)


@dataclass(frozen=True, slots=True)
class BoardCell:
    """The worst level among the quotas that count a pod of one priority class."""

    column: str
    title: str
    level: Level | None


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One line of the board."""

    place: BoardNamespace
    cells: Sequence[BoardCell]


class _Same:
    """A quota by identity, as a cache key: the snapshot keeps the same object until it changes."""

    __slots__ = ("value",)

    def __init__(self, value: ResourceQuota) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


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
        board = sorted(
            (
                ns
                for ns in places_of(on_board)
                if search in ns.namespace and roles.sees(user, ns.cluster, ns.namespace)
            ),
            key=lambda ns: (ns.namespace, ns.cluster),
        )
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


def places_of(clusters: Mapping[str, ClusterPolicies]) -> Iterator[BoardNamespace]:
    """Every namespace with a quota that bounds anything, in no order; one query."""
    keys = [each.id for each in clusters.values()]
    # As text, which serves as a cache key; it is decoded only when it has changed.
    usages = QuotaUsage.objects.filter(cluster__in=keys).annotate(text=Cast("used", TextField()))
    used = dict(usages.order_by().values_list("quota_id", "text"))
    for cluster in clusters.values():
        for name, found in cluster.namespaces.items():
            # Unreadable policies cannot be decoded: there is no level to show.
            if not found.quota_keys or found.problem:
                continue
            levels = [
                (quota, level)
                for quota in found.policy_set.resource_quotas
                if (
                    level := worst_of(_Same(quota), used.get(found.quota_keys[quota.name].id, "{}"))
                )
            ]
            if levels:
                yield BoardNamespace(cluster.name, name, levels)


@lru_cache(maxsize=16_384)
def worst_of(quota: _Same, used: str) -> Level | None:
    """The worst level of a quota; cached, since most quotas of a board do not change."""
    return worst(levels_of(quota.value, loads(used)))


def columns_of(clusters: Sequence[str], places: Sequence[BoardNamespace]) -> tuple[list[str], int]:
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


def row_of(place: BoardNamespace, columns: Sequence[str]) -> BoardRow:
    """One line: a cell for each column."""
    board_cells = []
    for column in columns:
        level = worst(level for quota, level in place.quotas if counts_class(quota, column))
        board_cells.append(BoardCell(column, title_of(column), level))
    return BoardRow(place, board_cells)
