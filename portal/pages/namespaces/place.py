"""NamespaceTabPage: the namespace that an address names, its policies, its head and tabs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from django.shortcuts import get_object_or_404
from django.urls import reverse

from policies import roles, snapshot
from policies.models import Namespace
from portal.pages.clusters.status import NEEDS_A_LOOK
from portal.pages.namespaces.figures import number_decided
from portal.pages.namespaces.policies import groups_of
from portal.pages.views import ClusterPage
from sync.enforcement.survey import namespaces_left_out
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.policy import PolicySet
    from portal.pages.namespaces.policies import Group

LABELS_SHOWN: Final = 4
_EDITED_KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")


@dataclass(frozen=True, slots=True)
class NamespaceTab:
    """A tab of a namespace; ``current`` is a value of ``aria-current``, or empty."""

    label: str
    address: str
    current: str
    number: int | None = None


class NamespaceTabPage(ClusterPage):
    """A page of a namespace below its tabs; ``tab`` is the name of its route."""

    tab: ClassVar[str] = "namespace"
    namespace: Namespace

    def find(self, names: dict[str, Any]) -> None:
        """Find the namespace, or raise Http404."""
        super().find(names)
        self.namespace = get_object_or_404(Namespace, cluster=self.cluster, name=names["namespace"])

    @cached_property
    def policies(self) -> PolicySet:
        """The policies in force, with the used amounts of quotas."""
        return snapshot.load(self.cluster.name, self.namespace.name)

    @cached_property
    def groups(self) -> list[Group]:
        """The policies by kind, in their order of evaluation."""
        return groups_of(self.policies)

    @cached_property
    def decided(self) -> int:
        """How many decisions there were in the last 24 hours."""
        return number_decided(self.cluster.name, self.namespace.name)

    def names(self) -> dict[str, Any]:
        """The names that every part of the page needs."""
        return {"cluster": self.cluster, "namespace": self.namespace}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the head and the tabs."""
        user, place = self.request.user, (self.cluster.name, self.namespace.name)
        synced = SyncedObject.objects.filter(
            cluster=self.cluster, namespace=self.namespace.name, gone=None, kind__in=_EDITED_KINDS
        )
        states = list(synced.values_list("state", flat=True))
        begin = reverse("policy-begin")
        may_edit = any(
            roles.may(user, roles.writing(kind, "add"), cluster=place[0], namespace=place[1])
            for kind in _EDITED_KINDS
        )
        query = urlencode({"cluster": place[0], "namespace": place[1]})
        return super().get_context_data(
            **{**kwargs, **self.names()},
            labels=list(sorted(self.namespace.labels.items())[:LABELS_SHOWN]),
            to_settle=sum(state in NEEDS_A_LOOK for state in states),
            compared=len(states),
            tabs=list(self._tabs(len(states))),
            begin=f"{begin}?{query}" if may_edit else "",
            is_left_out=self.namespace.name in namespaces_left_out(self.cluster),
            is_connected=hasattr(self.cluster, "connection"),
        )

    def _tabs(self, compared: int) -> Iterator[NamespaceTab]:
        place = [self.cluster.name, self.namespace.name]
        query = urlencode({"cluster": place[0], "namespace": place[1], "last": "24h"})
        numbers = {
            "namespace-policies": sum(len(group.rows) for group in self.groups),
            "namespace-live": compared,
        }
        tabs = {
            "namespace": "Overview",
            "namespace-policies": "Policies",
            "decisions": "Decisions",
            "namespace-simulate": "Simulate",
            "namespace-live": "Live",
        }
        for route, label in tabs.items():
            if route == "decisions":
                address = f"{reverse('decision-list')}?{query}"
                yield NamespaceTab(label, address, "", self.decided)
                continue
            current = "page" if route == self.tab else ""
            yield NamespaceTab(label, reverse(route, args=place), current, numbers.get(route))
