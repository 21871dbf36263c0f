"""One cluster, its namespaces, and one namespace as of an instant."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.http import Http404

from policies import history, roles
from policies.models import Cluster, Namespace, PolicyRevision, PriorityClass
from policies.models.roles import scope_covers
from portal.pages.lists import any_contains, page_of
from portal.pages.past.lists import numbers_of, policy_lines, quota_lines
from portal.pages.past.page import PastPage, require_seen

if TYPE_CHECKING:
    from policies.models.edits import PolicyRevisionQuerySet

_CONFIGURATION = "ResourceQuotaConfiguration"


class _PlacePage(PastPage):
    """A page of one cluster, or of a namespace of it."""

    @cached_property
    def writes(self) -> dict[str, int]:
        """How many writes of the cluster were done."""
        return history.revisions_at([self.kwargs["cluster"]], self.instant)

    def in_force(
        self, *kinds: str, namespace: str | None = None, name: str | None = None
    ) -> PolicyRevisionQuerySet:
        """The revisions in force in the cluster, or in one namespace of it, or of one name."""
        namespaces, names = (None if each is None else [each] for each in (namespace, name))
        return history.in_force(self.writes, kinds=kinds, namespaces=namespaces, names=names)


class PastClusterView(_PlacePage):
    """A cluster: its settings, limited resources, classes, namespaces and roles."""

    template_name = "past/cluster.html"
    title = "Cluster"

    def find(self, names: dict[str, Any]) -> None:
        """Open for those who see the whole cluster."""
        require_seen(self.request.user, str(names["cluster"]), "")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the cluster had."""
        wide = list(self.in_force(Cluster.kind, _CONFIGURATION, PriorityClass.kind))
        limited = next((each.after for each in wide if each.kind == _CONFIGURATION), None) or {}
        stored = next((each for each in wide if each.kind == Cluster.kind), None)
        name = self.kwargs["cluster"]
        numbers = numbers_of(self.writes)
        return super().get_context_data(
            **kwargs,
            stored=stored,
            spec=((stored.after if stored else None) or {}).get("spec") or {},
            limited=limited.get("limitedResources") or [],
            classes=[each for each in wide if each.kind == PriorityClass.kind],
            namespaces=numbers[name, True],
            policies=numbers[name, False],
            bindings=_bindings(self, name, ""),
        )


class PastNamespacesView(_PlacePage):
    """The namespaces of a cluster."""

    template_name = "past/namespaces.html"
    title = "Namespaces"

    def find(self, names: dict[str, Any]) -> None:
        """Open for those who see any part of the cluster."""
        require_seen(self.request.user, str(names["cluster"]), None)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of the namespaces that the reader may see."""
        rows = self.in_force(Namespace.kind)
        rows = roles.visible(rows, self.request.user, cluster="cluster", namespace="name")
        if words := self.request.GET.get("q", "").replace("\0", "").strip():
            rows = rows.filter(any_contains(words, "name"))
        return super().get_context_data(**kwargs, page=page_of(rows, self.request))


class PastNamespaceView(_PlacePage):
    """A namespace: labels, policies in words, quotas with what they used, and roles."""

    template_name = "past/namespace.html"
    title = "Namespace"

    def find(self, names: dict[str, Any]) -> None:
        """Open for those who see the namespace."""
        require_seen(self.request.user, str(names["cluster"]), str(names["namespace"]))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the namespace had; a fixed number of queries for any number of policies."""
        cluster, name = self.kwargs["cluster"], self.kwargs["namespace"]
        stored = self.in_force(Namespace.kind, name=name).first()
        policies = list(self.in_force(*history.POLICY_KINDS, namespace=name))
        if stored is None and not policies and not _was_ever(cluster, name):
            raise Http404
        quotas = [each for each in policies if each.kind == "ResourceQuota"]
        knows_usage = self.horizon.knows_usage(self.instant)
        return super().get_context_data(
            **kwargs,
            stored=stored,
            metadata=((stored.after if stored else None) or {}).get("metadata") or {},
            lines=policy_lines(policies),
            quotas=quota_lines(history.objects_of(quotas), self, knows_usage=knows_usage),
            bindings=_bindings(self, cluster, name),
            stages=history.stages_at(cluster, name, self.instant),
            sees_cluster=roles.sees(self.request.user, cluster, ""),
        )


def _was_ever(cluster: str, namespace: str) -> bool:
    """Whether the record knows a namespace at all."""
    known = PolicyRevision.objects.of(cluster=cluster, kind=Namespace.kind, name=namespace)
    return known.exists()


def _bindings(page: PastPage, cluster: str, namespace: str) -> list[history.PastBinding] | None:
    """The roles that held in a place; None where the record does not reach."""
    if not page.horizon.knows_roles(page.instant):
        return None
    return [
        each
        for each in history.role_bindings_at(page.instant)
        if scope_covers((each.cluster, each.namespace), cluster, namespace)
    ]
