"""The cluster that a reader chose for all pages, in the address; the clusters to choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse

from policies import roles
from policies.models import Cluster

if TYPE_CHECKING:
    from django.http import HttpRequest

MOST_CHOICES: Final = 50
"""Clusters in the menu; the page of clusters lists all."""
_PLACES_IN_LIST: Final = ("page", "before", "after", "line")
"""Parameters that say where in a list the reader is: in another cluster's list they are wrong."""
_OF_EACH_CLUSTER: Final = frozenset({"namespace-list", "policy-import"})
"""Pages that every cluster has, for whoever sees a part of it."""
_OF_EACH_WHOLE_CLUSTER: Final = frozenset(
    f"cluster-{page}"
    for page in ("detail", "enforcement", "objects", "ownership", "runs", "settings")
)
"""Pages that every cluster has, for those who see the whole of it."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """One line of the switcher; the name is empty for all clusters."""

    name: str
    address: str
    is_chosen: bool


def visible_clusters(request: HttpRequest) -> list[str]:
    """The clusters of which the reader sees any part, by name; one query for a request."""
    known: list[str] | None = getattr(request, "_visible_clusters", None)
    if known is None:
        seen = roles.visible(Cluster.objects.all(), request.user, cluster="name")
        known = list(seen.order_by("name").values_list("name", flat=True))
        request._visible_clusters = known  # type: ignore[attr-defined]  # noqa: SLF001 - kept for the request alone, as Django keeps its user
    return known


def chosen_cluster(request: HttpRequest) -> str:
    """The cluster that the path or ``?cluster=`` names, as far as the reader sees it; or empty."""
    match = request.resolver_match
    named = str(match.kwargs.get("cluster", "")) if match else ""
    named = named or request.GET.get("cluster", "")
    return named if named and named in visible_clusters(request) else ""


def cluster_choices(request: HttpRequest) -> list[ClusterChoice]:
    """All clusters together and each by itself, with the address of this page in it."""
    chosen = chosen_cluster(request)
    names = ["", *visible_clusters(request)[:MOST_CHOICES]]
    return [ClusterChoice(name, _address_in(request, name), name == chosen) for name in names]


def _address_in(request: HttpRequest, cluster: str) -> str:
    match: Any = request.resolver_match
    if match and "cluster" in match.kwargs:
        # A page of one cluster: the same of the other, or a page that every cluster has.
        if not cluster:
            return reverse("cluster-list")
        if match.url_name in _OF_EACH_CLUSTER:
            return reverse(match.url_name, args=[cluster])
        if not roles.sees(request.user, cluster, ""):
            return reverse("namespace-list", args=[cluster])
        is_there = match.url_name in _OF_EACH_WHOLE_CLUSTER
        return reverse(match.url_name if is_there else "cluster-detail", args=[cluster])
    query = request.GET.copy()
    for name in ("cluster", *_PLACES_IN_LIST):
        query.pop(name, None)
    if cluster:
        query["cluster"] = cluster
    return f"{request.path}?{query.urlencode()}" if query else request.path
