"""FindView, the command palette: PaletteEntries found by words: pages, clusters, policies, ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse

from policies import roles
from policies.drafts.kinds import BY_NAME
from policies.models import (
    Cluster,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PriorityClass,
    ResourceQuota,
)
from portal.pages.decisions.explorer import visible_decisions
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

OF_A_KIND: Final = 6
"""Results shown of each kind; more letters narrow them down."""
LONGEST_SEARCH: Final = 253
PALETTE_PAGES: Final = (
    ("Home", "home", ""),
    ("Decisions", "decision-list", ""),
    ("Refusals", "decision-list", "verdict=denied"),
    ("Clusters", "cluster-list", ""),
    ("Quotas", "quota-board", ""),
    ("Quotas that need attention", "quota-board", "needs=attention"),
    ("History", "changes", ""),
    ("Connect a cluster", "cluster-connect", ""),
    ("Your account and tokens", "account", ""),
    ("API", "api-docs", ""),
)
_POLICY_MODELS: Final = (LimitRange, MetadataPolicy, ResourceQuota)


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One result: its name, its kind, its address."""

    name: str
    what: str
    address: str


def find(text: str, user: AbstractBaseUser | AnonymousUser) -> list[PaletteEntry]:
    """Find objects whose names contain the words; without words, the pages."""
    search_words = text.strip()[:LONGEST_SEARCH]
    if "\0" in search_words:
        return []
    palette_entries = [*_find_pages(search_words)]
    if search_words:
        # Decisions first: their ids are found as a whole, so there is at most one.
        for find_kind in (_decision_entry, _cluster_entries, _find_namespaces, _find_policies):
            palette_entries += find_kind(search_words, user)
    return palette_entries


def _find_pages(search_words: str) -> Iterator[PaletteEntry]:
    for page_name, route, query in PALETTE_PAGES:
        if search_words.casefold() in page_name.casefold():
            yield PaletteEntry(page_name, "page", reverse(route) + (f"?{query}" if query else ""))


def _decision_entry(search_words: str, user: Any) -> Iterator[PaletteEntry]:
    for event in visible_decisions(user).with_id(search_words):
        entry_kind = f"decision, {event.get_verdict_display().lower()}"
        yield PaletteEntry(event.id, entry_kind, reverse("decision-detail", args=[event.pk]))


def _cluster_entries(search_words: str, user: Any) -> Iterator[PaletteEntry]:
    seen_clusters = roles.visible(Cluster.objects.all(), user, cluster="name", whole=True)
    for cluster in seen_clusters.filter(name__icontains=search_words).order_by("name")[:OF_A_KIND]:
        yield PaletteEntry(cluster.name, "cluster", reverse("cluster-detail", args=[cluster.name]))


def _find_namespaces(search_words: str, user: Any) -> Iterator[PaletteEntry]:
    cluster_name, _, namespace_name = search_words.rpartition("/")
    rows = roles.visible(Namespace.objects.all(), user, cluster="cluster__name", namespace="name")
    found = rows.filter(name__icontains=namespace_name, cluster__name__icontains=cluster_name)
    for namespace in found.select_related("cluster").order_by("name", "cluster__name")[:OF_A_KIND]:
        address = reverse("namespace", args=[namespace.cluster.name, namespace.name])
        yield PaletteEntry(str(namespace), "namespace", address)


def _find_policies(search_words: str, user: Any) -> Iterator[PaletteEntry]:
    for model in _POLICY_MODELS:
        matching: Any = roles.visible(
            model.objects.filter(name__icontains=search_words),
            user,
            cluster="namespace__cluster__name",
            namespace="namespace__name",
        )
        matched = matching.select_related("namespace__cluster").order_by("name", "pk")[:OF_A_KIND]
        for policy in matched:
            entry_name, home = f"{policy.namespace}/{policy.name}", policy.namespace
            # The editor also shows a policy to those who may not change it.
            names = [home.cluster.name, home.name, BY_NAME[policy.kind].plural, policy.name]
            yield PaletteEntry(entry_name, policy.kind, reverse("policy", args=names))
    classes = roles.visible(PriorityClass.objects.all(), user, cluster="cluster__name")
    matched = classes.filter(name__icontains=search_words).select_related("cluster")
    for priority in matched[:OF_A_KIND]:
        entry_address = reverse("priority-class", args=[priority.cluster.name, priority.name])
        yield PaletteEntry(priority.name, priority.kind, entry_address)


class FindView(PortalPage):
    """The results as lines for the palette."""

    template_name = "search/_found.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the results and the words searched for."""
        words = self.request.GET.get("q", "")
        return super().get_context_data(
            **kwargs, found=find(words, self.request.user), words=words.strip()
        )
