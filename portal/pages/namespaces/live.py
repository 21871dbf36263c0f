"""A namespace's policies in the cluster beside ours, line by line, with drift marked."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.limit_range import encode_limit_range
from engine.metadata_policy import encode_metadata_policy
from engine.resource_quota import encode_resource_quota
from portal.pages.addresses import object_address
from portal.pages.clusters.drift.sides import lines_of_manifest, normal_form
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.policy import PolicySet
    from policies.models import Cluster

SHOWN: Final = 12
KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
Lines = list[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Both:
    """One object on both sides; a line is (text, whether the other side has it otherwise)."""

    thing: SyncedObject
    address: str
    ours: Lines
    theirs: Lines
    raw: Sequence[str]
    is_drifted: bool


def both_sides(cluster: Cluster, policies: PolicySet) -> list[Both]:
    """The policies of a namespace that sync knows of, those that differ first; one query."""
    ours = {
        **{("LimitRange", each.name): encode_limit_range(each) for each in policies.limit_ranges},
        **{
            ("MetadataPolicy", each.name): encode_metadata_policy(each)
            for each in policies.metadata_policies
        },
        **{
            ("ResourceQuota", each.name): encode_resource_quota(each)
            for each in policies.resource_quotas
        },
    }
    found = SyncedObject.objects.filter(
        cluster=cluster, namespace=policies.namespace, kind__in=KINDS, gone=None
    ).defer("base")
    rows = [_both(cluster, each, ours.get((each.kind, each.name))) for each in found[:SHOWN]]
    return sorted(rows, key=lambda row: (not row.is_drifted, row.thing.kind, row.thing.name))


def _both(cluster: Cluster, thing: SyncedObject, manifest: dict[str, Any] | None) -> Both:
    if manifest:
        manifest = {key: value for key, value in manifest.items() if key != "status"}
    here, there = lines_of_manifest(normal_form(manifest)), lines_of_manifest(thing.theirs)
    marked_here, marked_there = _compared(here, there)
    return Both(
        thing=thing,
        address=object_address(cluster.name, thing),
        ours=marked_here,
        theirs=marked_there,
        raw=lines_of_manifest(thing.live),
        is_drifted=here != there,
    )


def _compared(here: list[str], there: list[str]) -> tuple[Lines, Lines]:
    if not here or not there:
        return [(line, False) for line in here], [(line, False) for line in there]
    matcher = difflib.SequenceMatcher(a=here, b=there, autojunk=False)
    same_here: set[int] = set()
    same_there: set[int] = set()
    for a, b, size in matcher.get_matching_blocks():
        same_here.update(range(a, a + size))
        same_there.update(range(b, b + size))
    return (
        [(line, at not in same_here) for at, line in enumerate(here)],
        [(line, at not in same_there) for at, line in enumerate(there)],
    )
