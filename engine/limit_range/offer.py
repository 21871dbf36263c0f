"""``Offer``: BoundedItems (requests, limits, path) of containers, pod, claim; the ranges it passed.

Items bound containers, the pod as a whole, or a claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from engine.cache import once
from engine.fields import expect_resource_list, read_map
from engine.limit_range.constraints import LIMITS, REQUESTS
from engine.limit_range.manifest import CLAIM, CONTAINER, POD
from engine.pod import limit_range_totals, read_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.pod import PodSpec
    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList

_CLAIM_SPEC = "PersistentVolumeClaim.spec of type v1.PersistentVolumeClaimSpec"
_CLAIM_RESOURCES = "PersistentVolumeClaimSpec.spec.resources of type v1.VolumeResourceRequirements"
_CLAIM_REQUESTS = "VolumeResourceRequirements.spec.resources.requests"
_MOST_PASSED_RANGES = 4


class BoundedItem(NamedTuple):
    """The amounts of a container, a pod as a whole, or a claim.

    ``own`` are the sides and names that the pod itself states, in ``spec.resources``.
    """

    requests: ResourceList
    limits: ResourceList
    path: str
    own: frozenset[tuple[str, str]] = frozenset()

    def field(self, side: str, name: str) -> str:
        """The path of an amount, stated or not."""
        path = "spec.resources" if (side, name) in self.own else self.path
        return f"{path}.{side}[{name}]"


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """The bounded amounts of an object, by type of item.

    ``passed`` are the last compiled ranges that it satisfied: pods of one template share an offer
    and meet the same ranges over and over.
    """

    subjects: Mapping[str, tuple[BoundedItem, ...]]
    is_claim: bool = False
    passed: list[object] = field(default_factory=list)

    def note(self, compiled: object) -> None:
        """Remember ranges that it satisfies."""
        # Threads may add at once: a lost entry is only found again.
        self.passed[_MOST_PASSED_RANGES - 1 :] = []
        self.passed.insert(0, compiled)


def offer_of(request: AdmissionRequest, spec: PodSpec | None) -> Offer:
    """Read the amounts of a pod or a claim; ``spec`` is the pod's, if known. Raises DecodeError."""
    offered = request.object or {}
    if request.resource.resource != "pods":
        claim_spec = read_map(offered, "spec", "spec", _CLAIM_SPEC)
        resources = read_map(claim_spec, "resources", "spec.resources", _CLAIM_RESOURCES)
        requests = expect_resource_list(
            resources.get("requests"), "spec.resources.requests", _CLAIM_REQUESTS
        )
        return Offer({CLAIM: (BoundedItem(requests, {}, "spec.resources"),)}, is_claim=True)
    return _pod_offer(spec or read_pod(offered))


@once
def _pod_offer(spec: PodSpec) -> Offer:
    containers = [
        BoundedItem(c.requests, c.limits, f"{c.path}.resources") for c in spec.all_containers
    ]
    totals = limit_range_totals(spec)
    # An amount that the pod itself states is a field; all others are sums over containers.
    own_names = frozenset(
        (side, name)
        for side, amounts in ((REQUESTS, spec.requests), (LIMITS, spec.limits))
        for name in amounts
        if name in {"cpu", "memory"}
    )
    pod = BoundedItem(totals.requests, totals.limits, "spec.containers[*].resources", own_names)
    return Offer({CONTAINER: tuple(containers), POD: (pod,)})
