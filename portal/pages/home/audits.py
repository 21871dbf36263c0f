"""AuditingPolicy: policies that only audit or warn, what they would have denied, for how long."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Max, Q
from django.urls import reverse
from django.utils import timezone

from admission.record.policy_hits import hits_since
from engine.policy import Enforcement
from policies import services, snapshot
from policies.models import PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from policies.snapshot.values import NamespacePolicies

SHOWN: Final = 2
_PLURALS: Final = {kind: f"{kind.lower()}s" for kind in services.KINDS} | {
    "MetadataPolicy": "metadatapolicies"
}
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class AuditingPolicy:
    """A policy that refuses nothing yet; ``days`` since it was changed, None if not known."""

    cluster: str
    kind: str
    namespace: str
    name: str
    mode: str
    number: int
    words: str
    days: int | None

    @property
    def address(self) -> str:
        """Its page."""
        plural = _PLURALS[self.kind]
        return reverse("policy", args=[self.cluster, self.namespace, plural, self.name])


def auditing_policies(user: Any, cluster: str, since: datetime, words: str) -> list[AuditingPolicy]:
    """Those that would have denied most since then; eight queries at most."""
    found_hits = hits_since(since, cluster=cluster, user=user).by_policy
    observed = Counter({key: n for key, hits in found_hits.items() if (n := hits.would_deny)})
    modes = _modes({(cluster, namespace) for cluster, _, namespace, _ in observed})
    found = [
        (key, number)
        for key, number in observed.most_common()
        if modes.get(key) in {Enforcement.AUDIT, Enforcement.WARN}
    ][:SHOWN]
    changed = _changed(key for key, _ in found)
    now = timezone.now()
    return [
        AuditingPolicy(
            *key,
            modes[key].value,
            number,
            words,
            (now - changed[key]).days if key in changed else None,
        )
        for key, number in found
    ]


def _modes(places: set[tuple[str, str]]) -> dict[_Key, Enforcement]:
    """The enforcement of every policy of these namespaces: cluster and name."""
    known = snapshot.refresh().clusters
    return {
        (cluster, policy.ref.kind, namespace, policy.ref.name): policy.enforcement
        for cluster, namespace in places
        if cluster in known and (found := known[cluster].namespaces.get(namespace))
        for policy in _policies_of(found)
    }


def _policies_of(found: NamespacePolicies) -> Iterable[Any]:
    if found.problem:
        return ()
    policies = found.policy_set
    return (*policies.limit_ranges, *policies.metadata_policies, *policies.resource_quotas)


def _changed(keys: Iterable[_Key]) -> dict[_Key, datetime]:
    """When each of these policies was changed last."""
    wanted = [
        Q(cluster=cluster, kind=kind, namespace=namespace, name=name)
        for cluster, kind, namespace, name in keys
    ]
    if not wanted:
        return {}
    rows = PolicyRevision.objects.filter(reduce(or_, wanted)).order_by()
    newest = rows.values_list("cluster", "kind", "namespace", "name").annotate(Max("created"))
    return {
        (cluster, kind, namespace, name): last for cluster, kind, namespace, name, last in newest
    }
