"""ReplayPolicies of a cluster by namespace: ``drafted`` with proposed ones, ``without_amounts``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.policy import PolicySet
from engine.quantity import ZERO, Quantity
from engine.quantity.text import INFINITE
from engine.resource_quota import decode_limited_resources, is_tracked
from policies.simulation import with_proposed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.policy import ResourceQuota

    Manifest = Mapping[str, Any]
    Named = tuple[str, str, str]

POLICY_KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
_LIMITLESS: Final = Quantity(INFINITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Proposed writes of a cluster, of change sets and of files alike.

    ``deletions`` are kind, namespace and name. ``limited_resources`` are the entries of the quota
    plugin's configuration, None where it stays as it is.
    """

    manifests: tuple[Manifest, ...] = ()
    deletions: tuple[Named, ...] = ()
    limited_resources: tuple[Manifest, ...] | None = None

    @property
    def namespaces(self) -> list[str]:
        """The namespaces whose own policies would change, sorted."""
        named = {str(each["metadata"].get("namespace") or "") for each in self._policies()}
        return sorted(named | {namespace for kind, namespace, _ in self.policy_deletions})

    @property
    def policy_deletions(self) -> list[Named]:
        """The deletions of policies; those of other kinds change no decision."""
        return [each for each in self.deletions if each[0] in POLICY_KINDS]

    def of_namespace(self, namespace: str) -> list[Manifest]:
        """The proposed policies of one namespace."""
        return [each for each in self._policies() if each["metadata"].get("namespace") == namespace]

    def _policies(self) -> Iterable[Manifest]:
        return (each for each in self.manifests if each.get("kind") in POLICY_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPolicies:
    """The policies of a cluster: those of namespaces, and what holds in all others (``bare``).

    ``unreadable`` are namespaces with a policy that the engine cannot read.
    """

    by_namespace: Mapping[str, PolicySet]
    bare: PolicySet = field(default_factory=PolicySet)
    unreadable: frozenset[str] = frozenset()

    def of(self, namespace: str) -> PolicySet:
        """The policy set of a namespace."""
        found = self.by_namespace.get(namespace)
        return found or dataclasses.replace(self.bare, namespace=namespace)


def drafted(base: ReplayPolicies, proposal: Proposal) -> ReplayPolicies:
    """The base with proposed policies put in and removed; raises ``DecodeError``.

    Namespaces that nothing is proposed for keep the very same policy sets.
    """
    by_namespace, bare = dict(base.by_namespace), base.bare
    for namespace in proposal.namespaces:
        gone = {
            (kind, name) for kind, place, name in proposal.policy_deletions if place == namespace
        }
        by_namespace[namespace] = with_proposed(
            base.of(namespace), contents=proposal.of_namespace(namespace), gone=gone
        )
    if proposal.limited_resources is not None:
        limited = decode_limited_resources(list(proposal.limited_resources))
        bare = dataclasses.replace(bare, limited_resources=limited)
        by_namespace = {
            name: dataclasses.replace(each, limited_resources=limited)
            for name, each in by_namespace.items()
        }
    return ReplayPolicies(by_namespace=by_namespace, bare=bare, unreadable=base.unreadable)


def without_amounts(policies: PolicySet) -> PolicySet:
    """The policies with quotas that match and cover as they do, but are never full.

    What they use depends on all other objects at that moment: the journal's part tells of it.
    """
    quotas = tuple(_never_full(quota) for quota in policies.resource_quotas)
    return dataclasses.replace(policies, resource_quotas=quotas)


def _never_full(quota: ResourceQuota) -> ResourceQuota:
    names = quota.spec_hard or quota.hard
    return dataclasses.replace(
        quota,
        hard=dict.fromkeys(names, _LIMITLESS),
        used={name: ZERO for name in names if is_tracked(name)},
    )


def read_annotations(policies: PolicySet) -> frozenset[str]:
    """The keys of annotations that metadata policies select or set."""
    keys: set[str] = set()
    for policy in policies.metadata_policies:
        for rule in policy.rules:
            keys.update(rule.policy_action.updated_annotations)
            selector = rule.policy_predicate.annotation_selector
            if selector is not None:
                keys.update(selector.match_labels)
                keys.update(each.key for each in selector.match_expressions)
    return frozenset(keys)
