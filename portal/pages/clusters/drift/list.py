"""ObjectListView, DriftView: objects on both sides of one cluster or of all, in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Q, QuerySet

from policies import roles
from policies.models import Cluster
from portal.pages.clusters.drift.queue import STATE_WORDS, in_order, lines_of
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.clusters.status import NEEDS_A_LOOK
from portal.pages.lists import columns_of, order_of, page_of, search_of
from portal.pages.shell.chosen import chosen_cluster
from portal.pages.views import PortalPage
from sync.models import SyncedObject

if TYPE_CHECKING:
    from django.http import HttpRequest

ALL: Final = "all"
_HEADINGS: Final = (
    # What sorts by it, its label, its look.
    ("name", "Object", "what"),
    ("state", "State", "state"),
    ("", "Difference", "difference"),
    ("", "Changed by", "who only-wide"),
    ("since", "Since", "since figure"),
)
_ORDERS: Final = {"name": ("name", "namespace"), "state": (), "since": ("since",)}
_QUEUE: Final = ",".join(NEEDS_A_LOOK)


def queue_permissions(page: PortalPage) -> dict[str, bool]:
    """Whether the reader may settle rows, and release their ownership."""
    return {
        "may_settle": page.may("sync.change_syncedobject"),
        "may_release": page.may("sync.delete_syncownership"),
    }


class ObjectListView(ClusterTabPage):
    """The objects of a cluster: those that wait for a person, or those of other states."""

    template_name = "clusters/objects.html"
    tab = "drift"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of rows, the states to choose from and the search."""
        objects = SyncedObject.objects.filter(cluster=self.cluster, gone=None)
        context = super().get_context_data(**kwargs)
        return {
            **context,
            **queue_permissions(self),
            **queue_page(objects, self.request),
            "may_own": self.may("sync.add_syncownership"),
            "is_compared": objects.exists(),
        }


class DriftView(PortalPage):
    """The objects that wait for a person, of all clusters that the reader sees as a whole."""

    template_name = "clusters/drift.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of rows; a fixed number of queries for any number of clusters."""
        objects = SyncedObject.objects.filter(gone=None)
        seen = roles.visible(objects, self.request.user, cluster="cluster__name", whole=True)
        cluster = chosen_cluster(self.request)
        if cluster:
            seen = seen.filter(cluster__name=cluster)
        return super().get_context_data(
            **kwargs,
            **queue_page(seen, self.request),
            may_settle=roles.may_somewhere(self.request.user, "sync.change_syncedobject"),
            may_release=roles.may_somewhere(self.request.user, "sync.delete_syncownership"),
            shows_clusters=not cluster,
            cluster_name=cluster,
            sees_any=roles.visible(
                Cluster.objects.all(), self.request.user, cluster="name", whole=True
            ).exists(),
        )


def queue_page(objects: QuerySet[SyncedObject], request: HttpRequest) -> dict[str, Any]:
    """The rows, the states with their numbers, and what was asked for."""
    asked = request.GET
    wanted = asked.get("state", "")
    states = [state for state in wanted.split(",") if state in STATE_WORDS]
    if not states and wanted != ALL:
        states = list(NEEDS_A_LOOK)
    search = search_of(asked)
    counts = dict(objects.order_by().values_list("state").annotate(Count("id")))
    found = objects.filter(state__in=states) if states else objects
    if search:
        found = found.filter(Q(namespace__icontains=search) | Q(name__icontains=search))
    order = order_of(asked, _ORDERS, usual="state")
    rows = _sorted(found, *order).select_related("cluster")
    page = page_of(rows, request)
    return {
        "lines": lines_of(page),
        "page": page,
        "search": search,
        "sort": asked.get("sort", "") if order != ("state", False) else "",
        "queue_columns": list(columns_of(_HEADINGS, asked, order)),
        "state": "" if states == list(NEEDS_A_LOOK) else wanted if states else ALL,
        "is_queue": bool(states) and set(states) <= set(NEEDS_A_LOOK),
        "choices": _state_choices(counts, states),
        "back": asked.urlencode(),
    }


def _sorted(
    rows: QuerySet[SyncedObject],
    column: str,
    is_down: bool,  # noqa: FBT001 - as order_of gives it
) -> QuerySet[SyncedObject]:
    """Rows by a column; those that are equal, and all by their state, keep the usual order."""
    sign = "-" if is_down else ""
    rows = in_order(rows, *(f"{sign}{name}" for name in _ORDERS[column]))
    return rows.reverse() if is_down and not _ORDERS[column] else rows


def _state_choices(counts: dict[str, int], states: list[str]) -> list[dict[str, Any]]:
    choices: list[tuple[str, str, list[str]]] = [
        ("needs attention", "", list(NEEDS_A_LOOK)),
        *((words, str(state), [str(state)]) for state, words in STATE_WORDS.items()),
        ("all", ALL, []),
    ]
    return [
        {
            "label": label,
            "state": state,
            "number": sum(counts.get(one, 0) for one in group or counts),
            "current": states == group,
        }
        for label, state, group in choices
    ]
