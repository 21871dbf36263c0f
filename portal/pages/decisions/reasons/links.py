"""PolicyLinks: the addresses of what a decision names; none for what has gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.urls import NoReverseMatch, reverse

from policies.drafts.kinds import BY_NAME
from policies.models import Namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from admission.models import AuditEvent
    from engine.policy import PolicySet
    from policies.models import PolicyRevision


@dataclass(frozen=True, slots=True)
class PolicyLinks:
    """Addresses of the policies of one namespace and of their revisions."""

    cluster: str
    namespace: str
    has_namespace: bool
    present: frozenset[tuple[str, str]] = field(default=frozenset())
    """Kind and name of the policies that are still there."""

    @classmethod
    def of(cls, event: AuditEvent, todays: PolicySet | None) -> PolicyLinks:
        """The links of a decision; one query."""
        present = frozenset(
            (policy.ref.kind, policy.ref.name)
            for policies in (
                (todays.limit_ranges, todays.metadata_policies, todays.resource_quotas)
                if todays
                else ()
            )
            for policy in policies
        )
        place = Namespace.objects.filter(cluster__name=event.cluster, name=event.namespace)
        return cls(event.cluster, event.namespace, place.exists(), present)

    def home(self) -> str:
        """The page of the namespace; empty where it has gone."""
        names = {"cluster": self.cluster, "namespace": self.namespace}
        return _address("namespace", names) if self.has_namespace else ""

    def policy(self, policy: Mapping[str, Any]) -> str:
        """The page of a policy; its revisions where it was deleted."""
        is_present = (policy["kind"], policy["name"]) in self.present
        return self._of(policy, "policy" if is_present else "policy-revisions")

    def revision(self, policy: Mapping[str, Any], number: int) -> str:
        """The page of one revision of a policy."""
        return self._of(policy, "policy-revision", number=number)

    def of_revision(self, revision: PolicyRevision) -> str:
        """The page of a revision; empty for one of another place."""
        if revision.namespace != self.namespace:
            return ""
        return self.revision({"kind": revision.kind, "name": revision.name}, revision.number)

    def _of(self, policy: Mapping[str, Any], route: str, **more: int) -> str:
        kind = BY_NAME.get(policy["kind"])
        if kind is None or not kind.is_namespaced or not self.has_namespace:
            return ""
        names = {
            "cluster": self.cluster,
            "namespace": self.namespace,
            "plural": kind.plural,
            "name": policy["name"],
            **more,
        }
        return _address(route, names)


def _address(route: str, names: Mapping[str, Any]) -> str:
    try:
        return reverse(route, kwargs=dict(names))
    except NoReverseMatch:
        return ""  # a recorded name need not fit into an address
