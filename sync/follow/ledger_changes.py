"""Changes of counted objects, brought into the ledger: events, complete lists, new quotas, orphans.

Nothing is freed that still exists: a deletion is believed by uid; after a gap a complete list comes
first; a reservation ends only once a list that began later lacks its object.
"""

from __future__ import annotations

import datetime as dt
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.resource_quota import resources_of
from policies import services
from policies.db.clock import read_clock
from policies.ledger import observed
from policies.ledger.live_objects import apply_list, too_early
from policies.models import LedgerPass
from sync import policy_writes
from sync.connect.permissions import CONFIGURATION
from sync.inventory.observations import (
    complete_list,
    live_object,
    names_by_quota,
    places_of,
    resources_in,
    used_in,
)
from sync.passes import ledger_pass
from sync.passes.ledger_pass import meet_charges

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from engine.request import GroupVersionResource
    from policies.models import Cluster
    from sync.errors import APIError
    from sync.follow.counted_objects import CountedObjects
    from sync.follow.inbox import WatchedChange
    from sync.follow.leases import FollowLease
    from sync.inventory.observations import NamespaceQuotas

    Item = dict[str, Any]

ADMITTED: Final = dt.timedelta(seconds=1)
"""What a request takes beyond its webhooks: the time until its object is stored, and seen here."""


DEFAULT_TIMEOUT: Final = 10
"""Seconds that a webhook has if its configuration does not say."""
LONGEST_MARGIN: Final = dt.timedelta(seconds=30)
"""The longest timeout that Kubernetes allows: assumed where the configurations cannot be read."""


class MetList(NamedTuple):
    """What comparing the ledger with a list leaves to do.

    ``recheck``: the uids of objects whose charges are too high, but too new to be lowered.
    """

    is_believed: bool
    recheck: Collection[str]


class NewQuotas(NamedTuple):
    """Quotas with uncounted names; the resources to list for them, and in which namespaces.

    ``found`` is what ``read_clock`` returned before they were read.
    """

    found: dt.datetime
    quotas: Sequence[services.Uncounted] = ()
    wanted: Mapping[GroupVersionResource, Collection[str]] = MappingProxyType({})


def release_gone(
    cluster: Cluster, lease: FollowLease, gone: Mapping[GroupVersionResource, Mapping[str, str]]
) -> int:
    """Free the room of deleted objects: namespaces by uid, by resource; returns how many charges.

    Their uids never come back, so that nothing else has to be known. Raises LostLeaseError.
    """
    return sum(
        observed.release_gone(cluster.pk, str(resource), places, guard=lease.guard)
        for resource, places in gone.items()
        if places
    )


def take_in(
    cluster: Cluster,
    lease: FollowLease,
    changes: Mapping[GroupVersionResource, Sequence[WatchedChange]],
    *,
    received: float,
    margin: dt.timedelta,
) -> dict[GroupVersionResource, Mapping[str, dt.datetime]]:
    """Bring events of present objects into the ledger.

    Returns the uids to look at again, each with its time, by resource.

    ``received`` is ``time.monotonic()`` before the first of them was read, ``margin`` how long an
    update may be under way after our review. Raises LostLeaseError.
    """
    places, known_at = places_of(cluster), clock_at(received)
    again: dict[GroupVersionResource, Mapping[str, dt.datetime]] = {}
    for resource, resource_changes in changes.items():
        seen = [
            _seen_object(change, resource, places, known_at)
            for change in resource_changes
            if change.namespace in places
        ]
        if seen:
            changed = observed.take_in(
                cluster.pk,
                str(resource),
                seen,
                received=known_at,
                margin=margin + ADMITTED,
                guard=lease.guard,
                names=names_by_quota(places, resource),
            )
            if changed.recheck:
                again[resource] = changed.recheck
    return again


def clock_at(moment: float) -> dt.datetime:
    """The database's time at a moment of ``time.monotonic()``."""
    return read_clock() - dt.timedelta(seconds=max(0.0, time.monotonic() - moment))


def meet_list(
    cluster: Cluster,
    lease: FollowLease,
    resource: GroupVersionResource,
    objects: CountedObjects,
    figures: Mapping[tuple[str, str], Item],
) -> MetList:
    """Compare the ledger with all objects of a resource.

    ``figures`` are the cluster's quotas, whose status counts where its own plugin enforces.
    """
    # What was charged since the list was requested may be an object that no event has shown yet.
    started, places = clock_at(objects.requested), places_of(cluster)
    if not resources_in(places).get(resource):
        return MetList(is_believed=True, recheck=())
    _add_figures(places, figures)
    complete = complete_list(cluster, resource, places, objects.all(), started=started)
    meet_charges(cluster, complete, lease.guard)
    passes = LedgerPass.objects.filter(cluster=cluster, resource=str(resource))
    is_believed = not passes.exclude(doubted=None).exists()
    return MetList(is_believed, recheck=too_early(complete))


def find_new(cluster: Cluster) -> NewQuotas:
    """Find the quotas with names under which existing objects are not counted yet."""
    found, quotas = read_clock(), services.uncounted(cluster)
    if not quotas:
        return NewQuotas(found)
    wanted = resources_in(_places_of_new(cluster, quotas))
    new_resources = resources_of(name for quota in quotas for name in quota.names)
    wanted = {each: namespaces for each, namespaces in wanted.items() if each in new_resources}
    return NewQuotas(found, quotas, wanted)


def count_new(
    cluster: Cluster,
    lease: FollowLease,
    new: NewQuotas,
    listed: Mapping[GroupVersionResource, Sequence[Item] | None],
    figures: Mapping[tuple[str, str], Item],
) -> None:
    """Count existing objects under names that are new in quotas.

    ``listed`` are the objects of each wanted resource in its namespaces, from a list that began
    after ``find_new``: a watch may be behind, and then what it lacks would be free room. None where
    the cluster does not let us list them. Raises LostLeaseError.
    """
    if not new.quotas:
        return
    places = _places_of_new(cluster, new.quotas)
    _add_figures(places, figures)
    for resource, items in listed.items():
        if items is not None:
            counted = complete_list(cluster, resource, places, items, started=new.found)
            # These namespaces alone: what is not on this list is not gone.
            apply_list(counted, believe=False, guard=lease.guard)
    policy_writes.note_counted(cluster, new.quotas, guard=lease.guard)


def _places_of_new(
    cluster: Cluster, quotas: Collection[services.Uncounted]
) -> dict[str, NamespaceQuotas]:
    namespaces = {quota.namespace for quota in quotas}
    return {name: place for name, place in places_of(cluster).items() if name in namespaces}


def note_blind(cluster: Cluster, resource: GroupVersionResource, error: APIError) -> None:
    """Store why a resource is not counted, with an alert that names its quotas."""
    ledger_pass.note_blind(cluster, resource, error, places_of(cluster))


def create_margin(configurations: Iterable[Item]) -> dt.timedelta:
    """How long a create may be under way after our review: the longest timeout of other webhooks.

    ``configurations`` are all ValidatingWebhookConfigurations: these webhooks are asked while ours
    is, so that the slowest one decides when the API server goes on.
    """
    timeouts = [
        webhook.get("timeoutSeconds") or DEFAULT_TIMEOUT
        for configuration in configurations
        if configuration["metadata"]["name"] != CONFIGURATION
        for webhook in configuration.get("webhooks") or ()
    ]
    return max(observed.CREATE_MARGIN, dt.timedelta(seconds=max(timeouts, default=0)))


def with_overdue(cluster_ids: Collection[int]) -> set[int]:
    """Those of these clusters with reservations that ``due_orphans`` may return."""
    return observed.with_overdue(cluster_ids, older_than=observed.CREATE_MARGIN + ADMITTED)


def due_orphans(cluster: Cluster, margin: dt.timedelta) -> dict[tuple[str, str], frozenset[str]]:
    """The reservations whose objects should be there by now: uids by resource and namespace."""
    return observed.due_orphans(cluster.pk, older_than=margin + ADMITTED)


def end_orphans(  # noqa: PLR0913 - most by name
    cluster: Cluster,
    lease: FollowLease,
    place: tuple[str, str],
    present: Collection[str],
    *,
    started: float,
    margin: dt.timedelta,
) -> int:
    """Release the reservations of a resource in a namespace that a complete list lacks.

    ``started`` is ``time.monotonic()`` before the list was requested.
    """
    list_started = clock_at(started)
    return observed.release_missing(
        cluster.pk, *place, present, list_started=list_started, margin=margin, guard=lease.guard
    )


def wanted_resources(cluster: Cluster) -> dict[GroupVersionResource, set[str]]:
    """The resources that the cluster's quotas count, and in which namespaces."""
    return resources_in(places_of(cluster))


def _add_figures(
    places: Mapping[str, NamespaceQuotas], figures: Mapping[tuple[str, str], Item]
) -> None:
    """Put what the cluster's own plugin counted beside our quotas."""
    for (namespace, name), live in figures.items():
        place = places.get(namespace)
        used = used_in(live) if place is not None and name in place.uids else None
        if place is not None and used is not None:
            place.observed[name] = used


def _seen_object(
    change: WatchedChange,
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    now: dt.datetime,
) -> observed.SeenObject:
    live = live_object(change.item, resource, places, now)
    return observed.SeenObject(
        uid=change.uid,
        name=live.name,
        namespace=live.namespace,
        counted=live.counted,
        is_final=live.is_final,
    )
