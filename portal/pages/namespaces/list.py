"""The page that lists a cluster's namespaces."""

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
_COUNTED: Final = {"ranges": LimitRange, "rules": MetadataPolicy, "quotas": ResourceQuota}


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
        query = self.request.GET
        search = query.get("q", "").replace("\0", "").strip()
        found = roles.visible(
            Namespace.objects.filter(cluster=self.cluster).order_by("name"),
            self.request.user,
            cluster="cluster__name",
            namespace="name",
        )
        if search:
            found = found.filter(name__icontains=search)
        page = Paginator(found, PAGE_SIZE).get_page(query.get("page"))
        return super().get_context_data(
            **kwargs,
            lines=lines_of(self.cluster, list(page)),
            page=page,
            search=search,
        )


def lines_of(cluster: Cluster, namespaces: list[Namespace]) -> list[NamespaceLine]:
    """Count the policies and differences of each of these namespaces."""
    keys = [each.pk for each in namespaces]
    counts = {
        name: Counter(
            dict(
                model.objects.filter(namespace__in=keys)
                .order_by()  # a default order would join the groups of the count
                .values_list("namespace")
                .annotate(Count("id"))
            )
        )
        for name, model in _COUNTED.items()
    }
    names = [each.name for each in namespaces]
    differing = SyncedObject.objects.filter(
        cluster=cluster, namespace__in=names, state__in=NEEDS_A_LOOK, gone=None
    )
    drifted = Counter(dict(differing.order_by().values_list("namespace").annotate(Count("id"))))
    return [
        NamespaceLine(
            namespace=each,
            counts={name: found[each.pk] for name, found in counts.items()},
            differing=drifted[each.name],
        )
        for each in namespaces
    ]
