"""The policies in effect in one namespace, in order of evaluation, as JSON with their manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers

from engine.limit_range import encode_limit_range
from engine.metadata_policy import encode_metadata_policy
from engine.policy import Authority, Enforcement, ResourceQuota
from engine.resource_list import to_json
from engine.resource_quota import encode_limited_resource, encode_resource_quota
from policies.api.components import LimitedResourcesField, ManifestField

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.policy import PolicySet

_ENCODERS: Final[tuple[tuple[str, Callable[[Any], dict[str, Any]]], ...]] = (
    ("limit_ranges", encode_limit_range),
    ("metadata_policies", encode_metadata_policy),
    ("resource_quotas", encode_resource_quota),
)


class EffectivePolicySerializer(serializers.Serializer[Any]):
    """One policy in effect."""

    enforcement = serializers.ChoiceField([mode.value for mode in Enforcement])
    manifest = ManifestField()
    used = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="of a quota: what is charged; without names that are not counted yet",
    )


class EffectivePoliciesSerializer(serializers.Serializer[Any]):
    """All policies of a namespace: ranges, then metadata policies, then quotas."""

    authority = serializers.ChoiceField(
        [each.value for each in Authority],
        help_text="who enforces ranges and quotas: the portal, or the API server itself (native)",
    )
    policies = EffectivePolicySerializer(many=True)
    limitedResources = LimitedResourcesField()  # noqa: N815 - Kubernetes' own name


def render(policy_set: PolicySet) -> dict[str, Any]:
    """The policies of a namespace as the engine applies them."""
    policies = [
        _policy(policy, encode(policy))
        for field, encode in _ENCODERS
        for policy in getattr(policy_set, field)
    ]
    limited = [encode_limited_resource(each) for each in policy_set.limited_resources]
    return {
        "authority": policy_set.authority.value,
        "policies": policies,
        "limitedResources": limited,
    }


def _policy(policy: Any, manifest: dict[str, Any]) -> dict[str, Any]:
    rendered = {"enforcement": policy.enforcement.value, "manifest": manifest}
    used = {"used": to_json(policy.used)} if isinstance(policy, ResourceQuota) else {}
    return {**rendered, **used}
