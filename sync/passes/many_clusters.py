"""Many clusters at once: paused, resumed, runs requested, in one transaction; ``undo`` of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from django.core.exceptions import ValidationError
from django.db import transaction

from policies.models import Cluster
from sync.connect.connection_history import (
    connection_revision,
    is_paused,
    last_connection_numbers,
    reason_of_pause,
)
from sync.models import SyncRun, SyncState
from sync.passes import lifecycle
from sync.runs import pause

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from policies.models import PolicyRevision
    from sync.models import ClusterConnection

    May = Callable[[str, str], bool]
    """Whether the person has a permission in a cluster, by its name."""

Action = Literal["pause", "resume", "sync"]
Batch = tuple[tuple[int, int], ...]
"""The keys of paused or resumed clusters, each with the number of its connection's revision."""
PAUSING: Final = "sync.change_clusterconnection"
PERMISSIONS: Final[dict[Action, str]] = {
    "pause": PAUSING,
    "resume": PAUSING,
    "sync": "sync.add_syncrun",
}
MOST: Final = 200
"""So many clusters at once: each keeps its locks until all are written."""


class ConnectionChangedError(Exception):
    """A connection was written since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """What happens to a cluster; ``refusal`` says why nothing does."""

    cluster: Cluster
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """The clusters, each with its refusal, if any; ``batch`` is what ``undo`` takes back."""

    clusters: tuple[ClusterPlan, ...]
    batch: Batch = ()

    @property
    def done(self) -> list[str]:
        """The clusters for which it was done, or would be."""
        return [each.cluster.name for each in self.clusters if not each.refusal]

    @property
    def refused(self) -> list[ClusterPlan]:
        """Those that stay as they are, for a reason."""
        return [each for each in self.clusters if each.refusal]


def plan(names: Collection[str], action: Action, *, may: May) -> FleetPlan:
    """What an action would do to the clusters of these names; it reads alone."""
    # By key, as whoever writes to several clusters locks them.
    clusters = Cluster.objects.filter(name__in=names).select_related("connection").order_by("pk")
    return FleetPlan(
        clusters=tuple(
            ClusterPlan(cluster=each, refusal=_refusal(each, action, may)) for each in clusters
        )
    )


def carry_out(
    names: Collection[str], action: Action, *, may: May, user: str, reason: str = ""
) -> FleetPlan:
    """Pause, resume or synchronize all that can be, in one transaction; the others are left out.

    A pause without a reason raises ``ValidationError``: ``reason_required``.
    """
    if action == "pause" and not reason.strip():
        raise ValidationError(
            "give a reason: it is shown while they are paused", code="reason_required"
        )
    with transaction.atomic():
        clusters = tuple(
            _carried_out(each, action, user=user, reason=reason)
            for each in plan(names, action, may=may).clusters
        )
        done = [each.cluster for each in clusters if not each.refusal]
        return FleetPlan(clusters=clusters, batch=() if action == "sync" else _numbers(done))


def undo(batch: Batch, *, may: May, user: str) -> int:
    """Take a pause or a resumption of this user back, for all clusters or none; their number.

    Raises ``ConnectionChangedError`` where a connection was written since, ``PermissionError``
    where the user may no longer write one, and what ``pause`` and ``resume`` raise.
    """
    numbers = dict(batch)
    with transaction.atomic():
        # As each pause does first: until the commit nobody else pauses or resumes one of them.
        list(
            SyncState.objects.select_for_update().filter(cluster__in=numbers).order_by("cluster_id")
        )
        clusters = list(Cluster.objects.filter(pk__in=numbers).order_by("pk"))
        if _numbers(clusters) != tuple((each.pk, numbers[each.pk]) for each in clusters):
            raise ConnectionChangedError
        for cluster in clusters:
            if not may(PAUSING, cluster.name):
                raise PermissionError(cluster.name)
            _take_back(connection_revision(cluster.name, numbers[cluster.pk]), cluster, user)
    return len(clusters)


def _take_back(revision: PolicyRevision, cluster: Cluster, user: str) -> None:
    if revision.user != user:
        raise PermissionError(cluster.name)
    if is_paused(revision.after):
        pause.resume(cluster, user=user, reason=f"undone: {revision.reason}")
    else:
        pause.pause(cluster, user=user, reason=reason_of_pause(revision) or "undone: a resumption")


def _refusal(cluster: Cluster, action: Action, may: May) -> str:
    """Why nothing is done to a cluster; empty where it is."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    if not may(PERMISSIONS[action], cluster.name):
        return "your role does not allow it"
    if connection is None:
        return "not connected"
    if action == "resume":
        return "" if connection.is_paused else "not paused"
    if not connection.is_paused:
        return ""
    return "paused already" if action == "pause" else "paused"


def _carried_out(planned: ClusterPlan, action: Action, *, user: str, reason: str) -> ClusterPlan:
    """The cluster after the action; what another person did meanwhile is a refusal, too."""
    if planned.refusal:
        return planned
    cluster = planned.cluster
    try:
        if action == "pause":
            pause.pause(cluster, user=user, reason=reason)
        elif action == "resume":
            pause.resume(cluster, user=user, reason=reason)
        else:
            lifecycle.request_by_person(cluster, mode=SyncRun.Mode.SYNC, user=user)
    except ValidationError as error:
        return replace(planned, refusal=" ".join(error.messages))
    return planned


def _numbers(clusters: Iterable[Cluster]) -> Batch:
    """The keys of clusters, each with the number of its connection's last revision; one query."""
    keys = {each.name: each.pk for each in clusters}
    found = last_connection_numbers(keys)
    return tuple((pk, found.get(name, 0)) for name, pk in keys.items())
