"""NamespaceListView: NamespaceLines of a cluster: policies counted by kind, objects differing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import Count

from policies import roles
from policies.models import LimitRange, MetadataPolicy, Namespace, ResourceQuota
from portal.pages.clusters.status import NEEDS_A_LOOK
from portal.pages.views import ClusterPage
from sync.models import SyncedObject

if TYPE_CHECKING:
    from policies.models import Cluster

PAGE_SIZE: Final = 50
_COUNTED_MODELS: Final = {"ranges": LimitRange, "rules": MetadataPolicy, "quotas": ResourceQuota}


@dataclass(frozen=True, slots=True)
class NamespaceLine:
    """A namespace, how many policies of each kind it has, and how many objects differ."""

    namespace: Namespace
    counts: dict[str, int]
    differing: int

    @property
    def is_bare(self) -> bool:
        """Whether only policies of the whole cluster apply here."""
        return not any(self.counts.values())


class NamespaceListView(ClusterPage):
    """All namespaces of a cluster, a page at a time."""

    template_name = "namespaces/namespaces.html"
    takes_part = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of lines; six queries, however many namespaces there are."""
        list_query = self.request.GET
        search = list_query.get("q", "").replace("\0", "").strip()
        visible_namespaces = roles.visible(
            Namespace.objects.filter(cluster=self.cluster).order_by("name"),
            self.request.user,
            cluster="cluster__name",
            namespace="name",
        )
        if search:
            visible_namespaces = visible_namespaces.filter(name__icontains=search)
        page = Paginator(visible_namespaces, PAGE_SIZE).get_page(list_query.get("page"))
        return super().get_context_data(
            **kwargs,
            lines=lines_of(self.cluster, list(page)),
            page=page,
            search=search,
        )


def lines_of(cluster: Cluster, namespaces: list[Namespace]) -> list[NamespaceLine]:
    """Count the policies and differences of each of these namespaces."""
    namespace_ids = [namespace.pk for namespace in namespaces]
    counts_by_kind = {
        name: Counter(
            dict(
                model.objects.filter(namespace__in=namespace_ids)
                .order_by()  # a default order would join the groups of the count
                .values_list("namespace")
                .annotate(Count("id"))
            )
        )
        for name, model in _COUNTED_MODELS.items()
    }
    namespace_names = [namespace.name for namespace in namespaces]
    unequal = SyncedObject.objects.filter(
        cluster=cluster, namespace__in=namespace_names, state__in=NEEDS_A_LOOK, gone=None
    )
    differ_in = Counter(dict(unequal.order_by().values_list("namespace").annotate(Count("id"))))
    return [
        NamespaceLine(
            namespace=namespace,
            counts={name: counter[namespace.pk] for name, counter in counts_by_kind.items()},
            differing=differ_in[namespace.name],
        )
        for namespace in namespaces
    ]
