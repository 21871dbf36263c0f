"""Unsaved policies in the place of stored ones of the same kind and name, or beside them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from engine.policy import Enforcement, ResourceQuota
from engine.policy_manifests import decode_policy
from engine.quantity import ZERO
from engine.resource_quota import is_tracked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import LimitRange, MetadataPolicy, PolicySet

    Policy = LimitRange | MetadataPolicy | ResourceQuota

_FIELDS: Final = {
    "LimitRange": "limit_ranges",
    "MetadataPolicy": "metadata_policies",
    "ResourceQuota": "resource_quotas",
}


def with_unsaved(
    policies: PolicySet, manifests: Sequence[Mapping[str, Any]], *, as_enforced: bool = False
) -> PolicySet:
    """Add unsaved manifests; other kinds are left out. Raises ``DecodeError`` with the field.

    ``as_enforced``: whatever their mode, to tell what they would refuse.

    They are taken to be of this namespace, whatever they say. A quota keeps what its stored
    namesake has used; a name that nothing is known of begins at 0.
    """
    for index, manifest in enumerate(manifests):
        policy = decode_policy(manifest, f"policies[{index}]")
        if policy is not None:
            placed = dataclasses.replace(policy, namespace=policies.namespace)
            if as_enforced:
                placed = dataclasses.replace(placed, enforcement=Enforcement.ENFORCE)
            policies = _with(policies, placed)
    return policies


def _with(policies: PolicySet, policy: Policy) -> PolicySet:
    if isinstance(policy, ResourceQuota):
        stored = {quota.name: quota for quota in policies.resource_quotas}.get(policy.name)
        policy = _opened(policy, stored)
    field = _FIELDS[policy.ref.kind]
    others = [each for each in getattr(policies, field) if each.name != policy.name]
    placed = sorted([*others, policy], key=lambda each: each.name.encode())
    placing: dict[str, Any] = {field: tuple(placed)}
    return dataclasses.replace(policies, **placing)


def _opened(quota: ResourceQuota, stored: ResourceQuota | None) -> ResourceQuota:
    """Say what is enforced and used, as the ledger would once the quota is saved."""
    known = stored.used if stored else {}
    hard = quota.spec_hard
    used = {name: known.get(name, ZERO) for name in hard if is_tracked(name)}
    return dataclasses.replace(quota, hard=hard, used=used)
