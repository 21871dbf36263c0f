"""Sides of a synced object as people compare them: ours, normal form, differences, their token."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from policies import services
from policies.managed_fields import normal
from sync import reconcile
from sync.values import READ_KINDS, WRITTEN_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.models import Cluster, Recorded
    from sync.models import SyncedObject


def our_object(thing: SyncedObject) -> Recorded | None:
    """The policy that the portal stores under the object's names."""
    # The cluster may have objects of kinds that the portal compares and does not store.
    if thing.kind not in {*services.KINDS, *READ_KINDS}:
        return None
    our_policy: Recorded | None = services.find_object(
        thing.cluster, kind=thing.kind, name=thing.name, namespace=thing.namespace
    )
    return our_policy


def our_objects(things: Iterable[SyncedObject]) -> dict[int, Recorded | None]:
    """The same for many, by their keys; a query for each table of each cluster."""
    by_cluster: defaultdict[Cluster, list[SyncedObject]] = defaultdict(list)
    for thing in things:
        by_cluster[thing.cluster].append(thing)
    found: dict[int, Recorded | None] = {}
    for cluster, here in by_cluster.items():
        stored = services.stored_by_key(cluster, {_names_of(thing) for thing in here})
        found |= {thing.pk: stored.get(_names_of(thing)) for thing in here}
    return found


def _names_of(thing: SyncedObject) -> tuple[str, str, str]:
    return thing.kind, thing.namespace, thing.name


def our_revision(ours: Recorded | None) -> int:
    """The revision of our side; 0 where there is none."""
    return ours.revision if ours else 0


def seen(thing: SyncedObject, ours: Recorded | None) -> str:
    """Both sides' versions as one word: a choice holds only for the versions that were shown.

    Of the cluster's side it is what is compared: a quota's resource version changes with its
    status, at each pod, and no choice would hold.
    """
    theirs = json.dumps([thing.object_uid, thing.theirs], sort_keys=True).encode()
    digest = hashlib.sha256(theirs).hexdigest()[:16]
    return f"{thing.version}.{digest}.{our_revision(ours)}"


def normal_form(our_manifest: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Our side as the passes compare it: defaults applied, quantities in one writing."""
    if our_manifest is None or our_manifest.get("kind") not in WRITTEN_KINDS:
        return dict(our_manifest) if our_manifest else None
    return normal(our_manifest)


def present_differences(
    thing: SyncedObject, ours: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The present differences, with the manager and base that the last pass noted.

    Where a side is missing, or the kind is only read, the differences of the last pass count.
    """
    noted_differences = dicts_in(thing.differences)
    if ours and thing.theirs and thing.kind in WRITTEN_KINDS:
        by_field = {difference.get("field"): difference for difference in noted_differences}
        return [
            {**by_field.get(each.field, {}), "field": each.field, "ours": each.a, "theirs": each.b}
            for each in reconcile.differences(ours, thing.theirs)
        ]
    if bool(ours) is not bool(thing.theirs):
        return noted_differences or [{"field": ""}]
    return noted_differences


def dicts_in(column: Any) -> list[dict[str, Any]]:
    """The objects in a JSON column that should be a list of them; rows of old may differ."""
    return [one for one in column if isinstance(one, dict)] if isinstance(column, list) else []
