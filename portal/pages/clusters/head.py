"""ClusterTabPage: the head of a cluster's pages: tabs with counts, one banner, actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from django.urls import reverse

from policies import roles
from policies.models import LimitRange, MetadataPolicy, Namespace, ResourceQuota
from portal.pages.clusters.status import NEEDS_A_LOOK, connection_mark
from portal.pages.views import ClusterPage
from sync.inventory.cluster_states import open_alerts
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.models import Cluster
    from portal.pages.clusters.status import Mark
    from sync.models import ClusterAlert

POLICY_MODELS: Final = (LimitRange, MetadataPolicy, ResourceQuota)
_SHOWN_ELSEWHERE: Final = ("conflict",)
"""Kinds of alerts that no banner repeats: the list of drift shows the same objects."""


@dataclass(frozen=True, slots=True)
class ClusterTab:
    """A tab of a cluster; ``current`` is a value of ``aria-current``, or empty."""

    label: str
    address: str
    current: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterHead:
    """What stands above every page of a cluster."""

    namespaces: int
    policies: int
    to_settle: int
    connection: Mark
    alert: ClusterAlert | None
    more_alerts: int


class ClusterTabPage(ClusterPage):
    """A page of a cluster below its tabs; ``tab`` names its own."""

    tab: ClassVar[str] = ""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the head, and whether runs may be requested from it."""
        route = self.request.resolver_match.url_name if self.request.resolver_match else ""
        context = super().get_context_data(**kwargs)
        sees_cluster = context["sees_cluster"]
        head = head_of(self.cluster, self.request.user, sees_cluster=sees_cluster)
        tabs = tuple(_tabs(self.cluster.name, head, self.tab, str(route), whole=sees_cluster))
        may_sync = sees_cluster and self.may("sync.add_syncrun")
        return {**context, "head": head, "tabs": tabs, "may_sync": may_sync}


def head_of(cluster: Cluster, user: Any, *, sees_cluster: bool) -> ClusterHead:
    """Count what the reader sees of the cluster; six queries."""
    namespaces = roles.visible(
        Namespace.objects.filter(cluster=cluster), user, cluster="cluster__name", namespace="name"
    )
    to_settle, alerts = 0, []
    if sees_cluster:
        waiting = SyncedObject.objects.filter(cluster=cluster, gone=None, state__in=NEEDS_A_LOOK)
        to_settle = waiting.count()
        alerts = list(open_alerts().filter(cluster=cluster).exclude(kind__in=_SHOWN_ELSEWHERE))
    return ClusterHead(
        namespaces=namespaces.count(),
        policies=sum(_policies_of(cluster, user)),
        to_settle=to_settle,
        connection=connection_mark(cluster),
        alert=alerts[0] if alerts else None,
        more_alerts=max(len(alerts) - 1, 0),
    )


def _policies_of(cluster: Cluster, user: Any) -> Iterator[int]:
    for model in POLICY_MODELS:
        policies: Any = model.objects.filter(namespace__cluster=cluster)
        seen = roles.visible(
            policies, user, cluster="namespace__cluster__name", namespace="namespace__name"
        )
        yield seen.count()


_TABS: Final = (
    # The key, the label, the route, and whether it opens only for those who see the whole cluster.
    ("overview", "Overview", "cluster-detail", True),
    ("namespaces", "Namespaces", "namespace-list", False),
    ("policies", "Policies", "all-policies", False),
    ("drift", "Drift", "cluster-objects", True),
    ("runs", "Runs", "cluster-runs", True),
    ("settings", "Settings", "cluster-settings", True),
)


def _tabs(
    cluster: str, head: ClusterHead, tab: str, route: str, *, whole: bool
) -> Iterator[ClusterTab]:
    numbers = {"namespaces": head.namespaces, "policies": head.policies, "drift": head.to_settle}
    for key, label, target, needs_whole in _TABS:
        if needs_whole and not whole:
            continue
        current = "" if key != tab else "page" if route == target else "true"
        is_of_fleet = target == "all-policies"
        address = reverse(target, args=[] if is_of_fleet else [cluster])
        if is_of_fleet:
            address = f"{address}?{urlencode({'cluster': cluster})}"
        yield ClusterTab(label, address, current, numbers.get(key))
