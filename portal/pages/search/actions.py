"""Actions of the palette: "new quota in pay", "raise limit of compute", "decisions of ada"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.urls import reverse

from policies import roles
from policies.drafts.kinds import BY_NAME
from policies.models import Cluster, ResourceQuota
from portal.pages.search.entries import PaletteEntry, decisions_of
from portal.pages.search.objects import namespaces_like, policy_entry
from portal.pages.views import PAUSING

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS_OF_KIND: Final = {
    "LimitRange": "limit range|limitrange|range",
    "ResourceQuota": "resource quota|resourcequota|quota",
    "MetadataPolicy": "metadata policy|metadatapolicy|policy",
}
_KIND: Final = "|".join(_WORDS_OF_KIND.values())
_NEW: Final = re.compile(
    rf"(?:new|create|add)(?:\s+(?P<kind>{_KIND}))?(?:\s+in)?(?:\s+(?P<of>\S+))?"
)
_RAISE: Final = re.compile(r"(?:raise|lower)(?:\s+limit)?(?:\s+of)?(?:\s+(?P<of>\S+))?")
_PAUSE: Final = re.compile(r"(?P<do>pause|resume)(?:\s+sync)?(?:\s+of)?(?:\s+(?P<of>\S+))?")
_DECISIONS: Final = re.compile(r"decisions\s+of\s+(?P<of>\S+)", re.IGNORECASE)
_NEAREST: Final = 40
"""Places looked at for those where the reader may act."""


def find_actions(words: str, user: Any, most: int) -> list[PaletteEntry]:
    """What the words ask to do, in places where the reader may do it."""
    asked = " ".join(words.casefold().split())
    found: Iterator[PaletteEntry] = iter(())
    if match := _NEW.fullmatch(asked):
        found = _new_policies(match["kind"] or "", match["of"] or "", user)
    elif match := _RAISE.fullmatch(asked):
        found = _limits(match["of"] or "", user)
    elif match := _PAUSE.fullmatch(asked):
        found = _pauses(match["do"], match["of"] or "", user)
    elif match := _DECISIONS.fullmatch(words.strip()):
        # Any name: most users of clusters have no account here.
        found = iter([decisions_of(match["of"])])
    return [entry for entry, _ in zip(found, range(most), strict=False)]


def _new_policies(kind_words: str, place: str, user: Any) -> Iterator[PaletteEntry]:
    kinds = [
        kind
        for kind, words in _WORDS_OF_KIND.items()
        if not kind_words or kind_words in words.split("|")
    ]
    for namespace in namespaces_like(place, user)[:_NEAREST]:
        where = {"cluster": namespace.cluster.name, "namespace": namespace.name}
        for kind in kinds:
            if roles.may(user, roles.writing(kind, "add"), **where):
                address = reverse("policy-new", args=[*where.values(), BY_NAME[kind].plural])
                yield PaletteEntry(f"New {kind} in {namespace.name}", where["cluster"], address)


def _limits(part: str, user: Any) -> Iterator[PaletteEntry]:
    quotas: Any = roles.visible(
        ResourceQuota.objects.filter(Q(name__icontains=part) | Q(namespace__name__icontains=part)),
        user,
        cluster="namespace__cluster__name",
        namespace="namespace__name",
    )
    nearest = quotas.select_related("namespace__cluster").order_by("name", "pk")[:_NEAREST]
    for quota in nearest:
        home = quota.namespace
        where = {"cluster": home.cluster.name, "namespace": home.name}
        if roles.may(user, roles.writing("ResourceQuota"), **where):
            name = f"Change limits of {home.name}/{quota.name}"
            yield PaletteEntry(name, where["cluster"], policy_entry(quota).address)


def _pauses(action: str, part: str, user: Any) -> Iterator[PaletteEntry]:
    is_paused = action == "resume"
    seen = roles.visible(Cluster.objects.all(), user, cluster="name", whole=True)
    connected = seen.filter(name__icontains=part).select_related("connection").order_by("name")
    for cluster in connected.exclude(connection=None)[:_NEAREST]:
        if cluster.connection.is_paused is is_paused and roles.may(
            user, PAUSING, cluster=cluster.name
        ):
            place = "#paused" if is_paused else "#pausing"
            address = reverse("cluster-detail", args=[cluster.name]) + place
            yield PaletteEntry(f"{action.title()} sync of {cluster.name}", "cluster", address)
