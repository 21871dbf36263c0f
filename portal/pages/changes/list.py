"""The page History: the revisions of all policies that a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse

from policies import roles
from policies.drafts.kinds import BY_NAME
from policies.manifests import diff_in_words
from policies.models import Cluster, Namespace, PolicyRevision
from portal.pages.permissions import PortalPage
from portal.pages.policies.page import names_of, route_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

ON_A_PAGE: Final = 25
LONGEST: Final = 253
LINES: Final = 4
"""What one change says in the list; its own page has all."""
FILTERS: Final = ("cluster", "namespace", "kind", "user")
_MOST_DIGITS: Final = 18


class ChangesView(PortalPage):
    """The changes, newest first, a page at a time."""

    template_name = "changes/history.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The page that was asked for, and what may be asked for."""
        asked = {
            name: self.request.GET.get(name, "").replace("\0", "").strip()[:LONGEST]
            for name in FILTERS
        }
        found = list(self._older(self.find(asked))[: ON_A_PAGE + 1])
        shown = found[:ON_A_PAGE]
        return super().get_context_data(
            **kwargs,
            lines=_lines(shown),
            asked=asked,
            is_asked=any(asked.values()),
            is_later=bool(self._before),
            kinds=sorted({*BY_NAME, "Cluster", "Namespace", "ClusterConnection"}),
            older=self._query(before=str(shown[-1].pk)) if len(found) > ON_A_PAGE else "",
            newest=self._query(),
        )

    def find(self, asked: dict[str, str]) -> QuerySet[PolicyRevision]:
        """All that fits and may be seen."""
        wanted = {name: text for name, text in asked.items() if text}
        rows = PolicyRevision.objects.filter(**wanted).order_by("-id")
        return roles.visible(rows, self.request.user, cluster="cluster", namespace="namespace")

    @property
    def _before(self) -> int:
        text = self.request.GET.get("before", "")
        return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0

    def _older(self, rows: QuerySet[PolicyRevision]) -> QuerySet[PolicyRevision]:
        return rows.filter(pk__lt=self._before) if self._before else rows

    def _query(self, **more: str) -> str:
        query = self.request.GET.copy()
        query.pop("before", None)
        query.update(more)
        return query.urlencode()


def _lines(shown: Sequence[PolicyRevision]) -> list[dict[str, Any]]:
    """Each change in words; what is gone with its namespace or cluster has no page any more."""
    clusters, spaces = {one.cluster for one in shown}, {one.namespace for one in shown}
    alive = {
        (name, "")
        for name in Cluster.objects.filter(name__in=clusters).values_list("name", flat=True)
    }
    alive |= set(
        Namespace.objects.filter(cluster__name__in=clusters, name__in=spaces).values_list(
            "cluster__name", "name"
        )
    )
    return [_line(one, has_page=(one.cluster, one.namespace) in alive) for one in shown]


def _line(one: PolicyRevision, *, has_page: bool) -> dict[str, Any]:
    said = diff_in_words.changes(one.before, one.after)
    return {
        "revision": one,
        "changes": said[:LINES],
        "more": max(0, len(said) - LINES),
        "address": _address(one) if has_page else "",
    }


def _address(one: PolicyRevision) -> str:
    """The page of the version; empty for what has no versions of its own."""
    kind = BY_NAME.get(one.kind)
    if kind is None or kind.is_namespaced is not bool(one.namespace):
        return ""
    names = names_of(kind, cluster=one.cluster, namespace=one.namespace, name=one.name)
    return reverse(f"{route_of(kind)}-revision", kwargs={**names, "number": one.number})
