"""List of synced objects: DriftLines with first differences, counts by STATE_WORDS, search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet

from policies import services
from portal.pages.clusters.drift.sides import Choice, choice_of
from portal.pages.clusters.status import NEEDS_A_LOOK
from portal.pages.views import ClusterPage, object_address
from sync.inventory.cluster_states import counted_states, rank
from sync.models import SyncedObject
from sync.passes.object_sides import dicts_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.models import Cluster

PAGE_SIZE: Final = 50
FIELDS_SHOWN: Final = 3
"""Fields of an object that a list shows; the others are on its own page."""
STATE_WORDS: Final = {
    SyncedObject.State.CONFLICT: "changed on both sides: a person must choose",
    SyncedObject.State.HELD: "held until a person confirms it",
    SyncedObject.State.DRIFTED: "changed in the cluster",
    SyncedObject.State.PENDING: "changed here, on its way to the cluster",
    SyncedObject.State.UNOWNED: "read only; the portal may not write it",
    SyncedObject.State.IN_SYNC: "the same on both sides",
}
"""The states in words, the most urgent first."""


@dataclass(frozen=True, slots=True)
class DriftLine:
    """One object of a list, with the first of its differences on all sides."""

    object: SyncedObject
    address: str
    differences: Sequence[Choice]
    more: int
    who: str
    can_be_owned: bool


def listed(cluster: Cluster) -> QuerySet[SyncedObject]:
    """The objects of a cluster without their manifests, the most urgent first."""
    synced_objects = SyncedObject.objects.filter(cluster=cluster, gone=None)
    # Three manifests of each row, which a list does not show, would be most of the work.
    return synced_objects.defer("base", "theirs", "live").order_by(
        rank("state", STATE_WORDS), "namespace", "kind", "name"
    )


def lines_of(cluster: Cluster, objects: Iterable[SyncedObject]) -> list[DriftLine]:
    """Put each object into a line."""
    drift_lines = []
    for synced_object in objects:
        differences = dicts_in(synced_object.differences)
        managers = {str(diff["manager"]) for diff in differences if diff.get("manager")}
        drift_line = DriftLine(
            object=synced_object,
            address=object_address(cluster.name, synced_object),
            differences=[choice_of(n, diff) for n, diff in enumerate(differences[:FIELDS_SHOWN])],
            more=max(len(differences) - FIELDS_SHOWN, 0),
            who=", ".join(sorted(managers)),
            can_be_owned=synced_object.kind in services.KINDS,
        )
        drift_lines.append(drift_line)
    return drift_lines


def state_counts(cluster: Cluster) -> list[dict[str, Any]]:
    """The number of objects in each state, the most urgent first, empty states included."""
    synced_objects = SyncedObject.objects.filter(cluster=cluster)
    count_by_state = {state: number for _, state, number in counted_states(synced_objects)}
    return [
        {"state": state, "words": words, "number": count_by_state.get(state, 0)}
        for state, words in STATE_WORDS.items()
    ]


class ObjectListView(ClusterPage):
    """All objects of a cluster that are compared, by state and by name."""

    template_name = "clusters/objects.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of lines, the states to choose from and the search."""
        asked = self.request.GET
        states = [state for state in asked.get("state", "").split(",") if state in STATE_WORDS]
        search = asked.get("q", "").replace("\0", "").strip()
        objects = listed(self.cluster)
        if states:
            objects = objects.filter(state__in=states)
        if search:
            objects = objects.filter(Q(namespace__startswith=search) | Q(name__startswith=search))
        page = Paginator(objects, PAGE_SIZE).get_page(asked.get("page"))
        return super().get_context_data(
            **kwargs,
            lines=lines_of(self.cluster, page),
            page=page,
            search=search,
            state=",".join(states),
            choices=_state_choices(self.cluster, states),
            may_own=self.may("sync.add_syncownership"),
            may_release=self.may("sync.delete_syncownership"),
            back=asked.urlencode(),
        )


def _state_choices(cluster: Cluster, states: list[str]) -> list[dict[str, Any]]:
    count_by_state = {row["state"]: row["number"] for row in state_counts(cluster)}
    state_groups: list[tuple[str, list[str]]] = [
        ("all", []),
        ("needs attention", list(NEEDS_A_LOOK)),
        *((str(state.value), [str(state.value)]) for state in STATE_WORDS),
    ]
    return [
        {
            "label": label,
            "number": sum(count_by_state[state] for state in states_in_group or count_by_state),
            "state": ",".join(states_in_group),
            "current": states == states_in_group,
        }
        for label, states_in_group in state_groups
    ]
