"""Parts: what is written to each of several clusters together; stored under all their locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies.models import KeptTest, PriorityClass
from policies.services.clusters import delete_priority_class
from policies.services.kept_tests import delete_kept_test
from policies.services.policies import delete_policy
from policies.services.preview import Preview, store_previews
from policies.services.write import changed_write, in_bulk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """What is written to one cluster, whose revision was ``number`` when it was planned."""

    cluster: Cluster
    number: int
    previews: tuple[tuple[Preview, Mapping[str, Any]], ...] = ()
    deletions: tuple[Any, ...] = ()


def namespaces_of(part: ClusterPart) -> set[str]:
    """The namespaces of the policies that a part writes."""
    deleted = {each.namespace_name for each in part.deletions}
    return {preview.key[1] for preview, _ in part.previews} | deleted


def store_part(part: ClusterPart, *, user: str, reason: str) -> tuple[str, int]:
    """Store a part inside ``policy_write``; returns the cluster, and the number of its write."""
    store_previews(cluster=part.cluster, previews=part.previews, user=user, reason=reason)
    with in_bulk():
        for stored in part.deletions:
            delete_stored(stored, user=user, reason=reason)
    return part.cluster.name, changed_write(part.cluster).number


def delete_stored(stored: Any, *, user: str, reason: str) -> None:
    """Delete a stored policy, test or priority class."""
    if isinstance(stored, KeptTest):
        delete_kept_test(test=stored, user=user, reason=reason)
    elif isinstance(stored, PriorityClass):
        delete_priority_class(priority_class=stored, user=user, reason=reason)
    else:
        delete_policy(policy=stored, user=user, reason=reason)
