"""The usage of an object that is stored in a cluster, as quotas count it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.pod import is_terminal
from engine.resource_list import mask, remove_zeros
from engine.resource_quota.evaluators import (
    PODS,
    SPECIAL,
    counted_by,
    evaluator_of,
)
from engine.resource_quota.match import QuotaSubject, match_quota
from engine.resource_quota.usage import usage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.policy import ResourceQuota
    from engine.request import GroupVersionResource
    from engine.resource_list import ResourceList


def counted_of(
    obj: Mapping[str, Any],
    resource: GroupVersionResource,
    quotas: Iterable[ResourceQuota],
    *,
    now: str | int | None = None,
) -> dict[str, ResourceList]:
    """Give what each enforced quota of the object's namespace counts of it, by the quota's name.

    Amounts are cut to the names that the quota tracks for such objects; zeros, and quotas that
    count nothing of it, are left out. Raises DecodeError for an object that cannot be read.
    """
    whole = usage_of(obj, resource, now=now)
    subject = QuotaSubject.of(resource, obj, None)
    counted: dict[str, ResourceList] = {}
    for quota in quotas:
        match = match_quota(quota, subject)
        if match.is_matched and match.is_enforced:
            amounts = remove_zeros(mask(whole, dict.fromkeys(match.names)))
            if amounts:
                counted[quota.name] = amounts
    return counted


def is_final(obj: Mapping[str, Any], resource: GroupVersionResource) -> bool:
    """Whether what the object uses can only shrink from now on: a pod that has ended."""
    return str(resource) == PODS and is_terminal(obj)


def names_of(quota: ResourceQuota, resource: GroupVersionResource) -> tuple[str, ...]:
    """Give the names of a quota under which objects of the resource count."""
    return evaluator_of(resource).tracked(tuple(quota.hard))


def resources_of(names: Iterable[str]) -> set[GroupVersionResource]:
    """Say whose objects count under any of these names of a quota's ``hard``.

    A name may be of a resource that no cluster serves; nothing but its spelling is known here.
    """
    bound = tuple(names)
    found = {each for each in SPECIAL if evaluator_of(each).tracked(bound)}
    return found | {each for each in map(counted_by, bound) if each is not None}
