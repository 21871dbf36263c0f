"""NamespaceListView, AllNamespacesView: NamespaceLines of one cluster or of all, with figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Count
from django.utils import timezone

from admission.models import AuditEvent
from policies import roles, snapshot
from policies.drafts.kinds import KINDS
from policies.models import LimitRange, MetadataPolicy, Namespace, ResourceQuota
from policies.snapshot.quota_levels import quotas_by_namespace
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.clusters.status import NEEDS_A_LOOK
from portal.pages.lists import columns_of, order_of, page_of, search_of
from portal.pages.namespaces.figures import DAY
from portal.pages.shell.chosen import chosen_cluster
from portal.pages.views import PortalPage
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from policies.ledger.usage import Level

    Place = tuple[str, str]

_COUNTED_MODELS: Final = {"ranges": LimitRange, "rules": MetadataPolicy, "quotas": ResourceQuota}
_NO_LEVEL: Final = (-1, -1)


class ListedNamespace(NamedTuple):
    """The columns of a namespace that its line is made of."""

    id: int
    name: str
    phase: str
    cluster_id: int
    cluster_name: str


@dataclass(frozen=True, slots=True)
class NamespaceLine:
    """A namespace with its policies by kind, its fullest quota, denials, and what differs."""

    namespace: ListedNamespace
    cluster: str
    counts: Mapping[str, int]
    level: Level | None
    denied: int
    differing: int

    @property
    def policies(self) -> int:
        """Its own policies of all kinds."""
        return sum(self.counts.values())

    @property
    def needs_attention(self) -> bool:
        """Whether something is refused, nearly full, or to be settled."""
        is_full = self.level is not None and self.level.needs_attention
        return bool(self.denied or self.differing or is_full)

    @property
    def drawn(self) -> int:
        """The part of the fullest quota that is used, in per cent of its bar."""
        return min(self.level.percent or 0, 100) if self.level else 0

    @property
    def bar_look(self) -> str:
        """The look of the bar."""
        percent = self.level.percent or 0 if self.level else 0
        is_near = self.level is not None and self.level.needs_attention
        return "full" if percent >= 100 else "near" if is_near else ""  # noqa: PLR2004 - per cent


ORDER: Final[dict[str, Callable[[NamespaceLine], Any]]] = {
    "name": lambda line: (line.namespace.name, line.cluster),
    "cluster": lambda line: (line.cluster, line.namespace.name),
    "policies": lambda line: line.policies,
    "quota": lambda line: line.level.rank if line.level else _NO_LEVEL,
    "denied": lambda line: line.denied,
    "drift": lambda line: line.differing,
}
HEADINGS: Final[tuple[tuple[str, str, str], ...]] = (
    ("name", "Namespace", "what"),
    ("cluster", "Cluster", "cluster"),
    ("policies", "Policies", "figure"),
    ("quota", "Fullest quota", "bar"),
    ("denied", "Denied 24 h", "figure"),
    ("drift", "To settle", "figure"),
)
PARTS: Final[dict[str, tuple[str, Callable[[NamespaceLine], bool]]]] = {
    "": ("all", lambda _: True),
    "attention": ("needs attention", lambda line: line.needs_attention),
    "bare": ("no policy", lambda line: not line.policies),
}


class NamespaceListView(ClusterTabPage):
    """The namespaces of a cluster, a page at a time."""

    template_name = "namespaces/namespaces.html"
    takes_part = True
    tab = "namespaces"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of lines; a fixed number of queries for any number of namespaces."""
        context = super().get_context_data(**kwargs)
        found = Namespace.objects.filter(cluster=self.cluster)
        listed = list_page(found, self.request, clusters=False)
        return {**context, **listed}


class AllNamespacesView(PortalPage):
    """The namespaces that the reader sees, of all clusters or of the chosen one."""

    template_name = "namespaces/all.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of lines; a fixed number of queries for any number of clusters."""
        found, cluster = Namespace.objects.all(), chosen_cluster(self.request)
        if cluster:
            found = found.filter(cluster__name=cluster)
        listed = list_page(found, self.request, clusters=not cluster)
        return super().get_context_data(**kwargs, **listed, cluster_name=cluster)


def list_page(
    found: QuerySet[Namespace], request: HttpRequest, *, clusters: bool
) -> dict[str, Any]:
    """The lines asked for, in their order, and the parts with their numbers."""
    user, asked = request.user, request.GET
    seen = roles.visible(found, user, cluster="cluster__name", namespace="name")
    search = search_of(asked)
    if search:
        seen = seen.filter(name__icontains=search)
    part = asked.get("part", "") if asked.get("part", "") in PARTS else ""
    # Columns, not objects: the order and the parts need every namespace, a page shows few.
    columns = ("id", "name", "phase", "cluster_id", "cluster__name")
    lines = lines_of(list(map(ListedNamespace._make, seen.order_by("name").values_list(*columns))))
    name, is_down = order = order_of(asked, ORDER, usual="name")
    # By name first: lines of equal figures keep that order.
    lines.sort(key=ORDER["name"])
    lines.sort(key=ORDER[name], reverse=is_down)
    chosen = [line for line in lines if PARTS[part][1](line)]
    page = page_of(chosen, request)
    headings = HEADINGS if clusters else tuple(each for each in HEADINGS if each[0] != "cluster")
    return {
        "lines": page.object_list,
        "page": page,
        "search": search,
        "part": part,
        "parts": [
            {"key": key, "label": label, "number": sum(map(holds, lines)), "current": key == part}
            for key, (label, holds) in PARTS.items()
        ],
        "columns": list(columns_of(headings, asked, order)),
        "sort": asked.get("sort", ""),
        "shows_clusters": clusters,
        # A policy belongs to one cluster: rows of several cannot share one.
        "may_begin": not clusters and _may_begin(user),
    }


def _may_begin(user: Any) -> bool:
    """Whether the person may create a policy in some namespace."""
    return any(
        roles.may_somewhere(user, roles.writing(kind.name, "add"))
        for kind in KINDS
        if kind.is_namespaced and not kind.is_configuration
    )


def lines_of(namespaces: Sequence[ListedNamespace]) -> list[NamespaceLine]:
    """Count the policies, denials and differences of namespaces that are seen; six queries."""
    clusters = {each.cluster_id: each.cluster_name for each in namespaces}
    counts = {
        name: Counter(
            dict(
                model.objects.filter(namespace__cluster__in=clusters)
                .order_by()  # a default order would join the groups of the count
                .values_list("namespace")
                .annotate(Count("id"))
            )
        )
        for name, model in _COUNTED_MODELS.items()
    }
    denied, differing = _denials(clusters.values()), _differing(clusters)
    levels = _levels(set(clusters.values()))
    return [
        NamespaceLine(
            namespace=each,
            cluster=each.cluster_name,
            counts={name: numbers.get(each.id, 0) for name, numbers in counts.items()},
            level=levels.get((each.cluster_name, each.name)),
            denied=denied.get((each.cluster_name, each.name), 0),
            differing=differing.get((each.cluster_name, each.name), 0),
        )
        for each in namespaces
    ]


def _denials(clusters: Any) -> Counter[Place]:
    since = timezone.now() - DAY
    denied = AuditEvent.objects.denied().filter(created__gte=since, cluster__in=list(clusters))
    rows = denied.order_by().values_list("cluster", "namespace").annotate(Count("id"))
    return Counter({(cluster, namespace): number for cluster, namespace, number in rows})


def _differing(clusters: Mapping[int, str]) -> Counter[Place]:
    waiting = SyncedObject.objects.filter(
        cluster__in=clusters, state__in=NEEDS_A_LOOK, gone=None
    ).order_by()
    rows = waiting.values_list("cluster", "namespace").annotate(Count("id"))
    return Counter({(clusters[key], namespace): number for key, namespace, number in rows})


def _levels(clusters: set[str]) -> dict[Place, Level]:
    # Of all namespaces: only those that the reader sees have a line to look theirs up.
    known = snapshot.refresh().clusters
    asked = {name: each for name, each in known.items() if name in clusters}
    return {(place.cluster, place.namespace): place.worst for place in quotas_by_namespace(asked)}
