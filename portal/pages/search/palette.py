"""Results of the command palette: pages, clusters, namespaces, policies, one decision."""

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
LONGEST: Final = 253
PAGES: Final = (
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
_POLICIES: Final = (LimitRange, MetadataPolicy, ResourceQuota)


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One result: its name, its kind, its address."""

    name: str
    what: str
    address: str


def find(text: str, user: AbstractBaseUser | AnonymousUser) -> list[PaletteEntry]:
    """Find objects whose names contain the words; without words, the pages."""
    words = text.strip()[:LONGEST]
    if "\0" in words:
        return []
    found = [*_pages(words)]
    if words:
        # Decisions first: their ids are found as a whole, so there is at most one.
        for search in (_decision, _clusters, _namespaces, _policies):
            found += search(words, user)
    return found


def _pages(words: str) -> Iterator[PaletteEntry]:
    for name, route, query in PAGES:
        if words.casefold() in name.casefold():
            yield PaletteEntry(name, "page", reverse(route) + (f"?{query}" if query else ""))


def _decision(words: str, user: Any) -> Iterator[PaletteEntry]:
    for event in visible_decisions(user).with_id(words):
        what = f"decision, {event.get_verdict_display().lower()}"
        yield PaletteEntry(event.id, what, reverse("decision-detail", args=[event.pk]))


def _clusters(words: str, user: Any) -> Iterator[PaletteEntry]:
    rows = roles.visible(Cluster.objects.all(), user, cluster="name", whole=True)
    for cluster in rows.filter(name__icontains=words).order_by("name")[:OF_A_KIND]:
        yield PaletteEntry(cluster.name, "cluster", reverse("cluster-detail", args=[cluster.name]))


def _namespaces(words: str, user: Any) -> Iterator[PaletteEntry]:
    cluster, _, name = words.rpartition("/")
    rows = roles.visible(Namespace.objects.all(), user, cluster="cluster__name", namespace="name")
    found = rows.filter(name__icontains=name, cluster__name__icontains=cluster)
    for namespace in found.select_related("cluster").order_by("name", "cluster__name")[:OF_A_KIND]:
        address = reverse("namespace", args=[namespace.cluster.name, namespace.name])
        yield PaletteEntry(str(namespace), "namespace", address)


def _policies(words: str, user: Any) -> Iterator[PaletteEntry]:
    for model in _POLICIES:
        found: Any = roles.visible(
            model.objects.filter(name__icontains=words),
            user,
            cluster="namespace__cluster__name",
            namespace="namespace__name",
        )
        rows = found.select_related("namespace__cluster").order_by("name", "pk")[:OF_A_KIND]
        for policy in rows:
            name, place = f"{policy.namespace}/{policy.name}", policy.namespace
            # The editor also shows a policy to those who may not change it.
            names = [place.cluster.name, place.name, BY_NAME[policy.kind].plural, policy.name]
            yield PaletteEntry(name, policy.kind, reverse("policy", args=names))
    classes = roles.visible(PriorityClass.objects.all(), user, cluster="cluster__name")
    rows = classes.filter(name__icontains=words).select_related("cluster")
    for priority in rows[:OF_A_KIND]:
        address = reverse("priority-class", args=[priority.cluster.name, priority.name])
        yield PaletteEntry(priority.name, priority.kind, address)


class FindView(PortalPage):
    """The results as lines for the palette."""

    template_name = "search/_found.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the results and the words searched for."""
        words = self.request.GET.get("q", "")
        return super().get_context_data(
            **kwargs, found=find(words, self.request.user), words=words.strip()
        )
