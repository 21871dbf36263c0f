"""LiveView: SyncedSides, the synced policies of a namespace as portal and cluster have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.limit_range import encode_limit_range
from engine.metadata_policy import encode_metadata_policy
from engine.resource_quota import encode_resource_quota
from portal.pages.clusters.drift.sides import lines_of_manifest, marked_lines
from portal.pages.namespaces.place import NamespaceTabPage
from portal.pages.views import object_address
from sync.models import SyncedObject
from sync.passes.object_sides import normal_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.policy import PolicySet
    from policies.models import Cluster

SHOWN: Final = 12
KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
SideLines = list[tuple[str, bool]]


class LiveView(NamespaceTabPage):
    """What the cluster has of the namespace's policies, beside the portal's."""

    template_name = "namespaces/live.html"
    tab = "namespace-live"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Both sides of each object, those that differ first."""
        return super().get_context_data(**kwargs, live=both_sides(self.cluster, self.policies))


@dataclass(frozen=True, slots=True)
class SyncedSides:
    """One object on both sides; a line is (text, whether the other side differs)."""

    thing: SyncedObject
    address: str
    ours: SideLines
    theirs: SideLines
    raw: Sequence[str]
    is_drifted: bool


def both_sides(cluster: Cluster, policies: PolicySet) -> list[SyncedSides]:
    """The synced policies of a namespace, those that differ first; one query."""
    our_manifests = {
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
    synced_objects = SyncedObject.objects.filter(
        cluster=cluster, namespace=policies.namespace, kind__in=KINDS, gone=None
    ).defer("base")  # a manifest for each row that this page does not show
    both_rows = []
    for thing in synced_objects[:SHOWN]:
        our_manifest = our_manifests.get((thing.kind, thing.name), {})
        # The status is the cluster's own: usage that differs is no drift of the policy.
        our_stored = {key: value for key, value in our_manifest.items() if key != "status"}
        our_lines = lines_of_manifest(normal_form(our_stored))
        their_lines = lines_of_manifest(thing.theirs)
        row = SyncedSides(
            thing=thing,
            address=object_address(cluster.name, thing),
            ours=marked_lines(their_lines, our_lines),
            theirs=marked_lines(our_lines, their_lines),
            raw=lines_of_manifest(thing.live),
            is_drifted=our_lines != their_lines,
        )
        both_rows.append(row)
    return sorted(both_rows, key=lambda row: (not row.is_drifted, row.thing.kind, row.thing.name))
