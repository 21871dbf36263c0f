"""Lists as of an instant: policies, quotas with what they used, clusters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.db.models import Count

from engine.errors import DecodeError
from engine.resource_quota import decode_resource_quota
from policies import history, roles
from policies.ledger.usage import levels_of
from policies.manifests import diff_in_words
from policies.models import Cluster, Namespace
from portal.pages.lists import any_contains, page_of
from portal.pages.past.page import PastPage
from portal.pages.views import revision_address

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from policies.history import PastObject
    from policies.models import PolicyRevision
    from policies.models.edits import PolicyRevisionQuerySet


class _ListPage(PastPage):
    """A page of the objects in force, of all clusters or of the chosen one."""

    def in_force(self, kinds: Collection[str]) -> PolicyRevisionQuerySet:
        """The revisions that the reader may see and that fit the search."""
        user, asked = self.request.user, self.request.GET
        seen, chosen = history.clusters_seen(user), asked.get("cluster", "")
        names = [name for name in seen if chosen in ("", name)]
        writes = history.revisions_at(names, self.instant)
        rows = history.in_force(writes, kinds=kinds)
        rows = roles.visible(rows, user, cluster="cluster", namespace="namespace")
        if words := asked.get("q", "").replace("\0", "").strip():
            rows = rows.filter(any_contains(words, "name", "namespace"))
        return rows


class PastPoliciesView(_ListPage):
    """The policies of the fleet as they were."""

    template_name = "past/policies.html"
    title = "All policies"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of policies, each in words with its last change; a fixed number of queries."""
        page = page_of(self.in_force(history.POLICY_KINDS), self.request)
        return super().get_context_data(**kwargs, page=page, lines=policy_lines(page.object_list))


class PastQuotasView(_ListPage):
    """The quotas of the fleet with what they used then, by place."""

    template_name = "past/quotas.html"
    title = "Quotas"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of quotas with the levels of their resources; a fixed number of queries."""
        page = page_of(self.in_force(["ResourceQuota"]), self.request)
        knows_usage = self.horizon.knows_usage(self.instant)
        lines = quota_lines(history.objects_of(page.object_list), self, knows_usage=knows_usage)
        return super().get_context_data(**kwargs, page=page, lines=lines)


class PastClustersView(_ListPage):
    """The clusters as they were: settings, numbers of namespaces and policies."""

    template_name = "past/clusters.html"
    title = "Clusters"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of clusters; a fixed number of queries."""
        user = self.request.user
        whole = [name for name in history.clusters_seen(user) if roles.sees(user, name, "")]
        writes = history.revisions_at(whole, self.instant)
        page = page_of(history.in_force(writes, kinds=[Cluster.kind]), self.request)
        numbers = numbers_of(writes)
        lines = [
            {
                "revision": each,
                "spec": (each.after or {}).get("spec") or {},
                "namespaces": numbers[each.cluster, True],
                "policies": numbers[each.cluster, False],
            }
            for each in page.object_list
        ]
        return super().get_context_data(**kwargs, page=page, lines=lines)


def numbers_of(writes: Mapping[str, int]) -> Counter[tuple[str, bool]]:
    """How many namespaces (True) and policies (False) each cluster had; one query."""
    kinds = (Namespace.kind, *history.POLICY_KINDS)
    rows = history.in_force(writes, kinds=kinds).order_by().values_list("cluster", "kind")
    numbers: Counter[tuple[str, bool]] = Counter()
    for cluster, kind, number in rows.annotate(number=Count("pk")):
        numbers[cluster, kind == Namespace.kind] += number
    return numbers


def policy_lines(revisions: Iterable[PolicyRevision]) -> list[dict[str, Any]]:
    """Policies in words, with the page of the revision that made each."""
    return [
        {
            "revision": each,
            "address": revision_address(each),
            "words": diff_in_words.changes(None, each.after)[1:],
        }
        for each in revisions
    ]


def quota_lines(
    quotas: Collection[PastObject], page: PastPage, *, knows_usage: bool
) -> list[dict[str, Any]]:
    """Quotas with the level of each resource; without usage where the journal does not reach."""
    used = history.used_of(quotas, page.instant) if knows_usage else {}
    return [
        {"quota": each, "levels": _levels(each, used.get(each.uid, {})), "hard": _hard(each)}
        for each in quotas
    ]


def _hard(quota: PastObject) -> dict[str, Any]:
    return (quota.manifest.get("spec") or {}).get("hard") or {}


def _levels(quota: PastObject, used: dict[str, str]) -> list[Any]:
    try:
        decoded = decode_resource_quota(history.with_status(quota, used))
    except DecodeError:
        return []  # stored by rules of then that hold no more; its hard values are shown
    return levels_of(decoded, used)
