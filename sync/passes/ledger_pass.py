"""The ledger's part of a pass: compare complete lists of objects with the charges.

What is seen is confirmed and charged what it uses; what was admitted and never appeared is given
back when its lease is over; what is gone, at once. Nothing is lowered on an incomplete list.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import transaction

from engine.resource_quota import resources_of
from policies import ledger, services
from policies.ledger.live_objects import count_vanished, meet
from policies.ledger.unlisted import end_by_lease
from policies.models import LedgerPass
from sync import alerts, policy_writes, reconcile
from sync.errors import (
    APIError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.inventory import usage_comparison
from sync.inventory.observations import figures_of, list_all, places_of, resources_in, unlisted
from sync.runs.leases import LostLeaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from contextlib import AbstractContextManager

    from engine.request import GroupVersionResource
    from policies.ledger.live_objects import CompleteList
    from policies.models import Cluster
    from sync.client import Client
    from sync.inventory.observations import NamespaceQuotas
    from sync.models import SyncRun
    from sync.runs.leases import Lease

    Guard = Callable[[], AbstractContextManager[object]]

EVERY: Final = dt.timedelta(seconds=55)
WHOLE: Final = ""
"""Stands in ``LedgerPass`` for all resources together."""
BLIND: Final = "ledger-blind"
FAILING: Final = "ledger-failing"
_TOO_MANY_REQUESTS: Final = 429
FAILED: Final = "ledger-failed"
"""Under which a run counts that its look at the ledger came to nothing."""
log = logging.getLogger(__name__)


def pass_over(cluster: Cluster, client: Client, run: SyncRun, lease: Lease) -> Counter[str]:
    """Look at the ledger as the last part of a run, which has kept the policies the same by then.

    Trouble is the ledger's alone: it stands in ``run.error`` and ``run.counts``, raises an alert
    and leaves the charges as they are; the next run looks again. Only ``LostLeaseError`` and what
    stops the cluster altogether (credential refused, server not trusted) go on to the caller.
    """
    try:
        counts = look_over(cluster, client, lease)
    except (LostLeaseError, UnauthorizedError, UntrustedError):
        raise
    except APIError as error:
        _note_failure(run, lease, f"{error.reason}: {error.message}")
        policy_writes.give_up_counting(cluster, error.message)
    except Exception as error:  # a defect here must not keep policies from going out and coming in
        log.exception("the ledger of %s could not be held against it", cluster)
        _note_failure(run, lease, f"{type(error).__name__}: {error}")
        policy_writes.give_up_counting(cluster, type(error).__name__)
    else:
        alerts.resolve(cluster, FAILING)
        return counts
    return Counter()


def _note_failure(run: SyncRun, lease: Lease, trouble: str) -> None:
    said = f"what quotas use was not confirmed, the next run tries again: {trouble}"
    run.error = f"{run.error}; {said}" if run.error else said
    run.counts = {**run.counts, FAILED: 1}
    with lease.guard():
        LedgerPass.objects.update_or_create(
            cluster=run.cluster, resource=WHOLE, defaults={"trouble": trouble}
        )
    alerts.raise_alert(run.cluster, FAILING, severity=alerts.WARNING, message=said)


def look_over(cluster: Cluster, client: Client, lease: Lease | None) -> Counter[str]:
    """Hold the ledger against one complete list of each resource that a quota counts.

    Gives how many charges were confirmed, added, corrected and released. Raises ``APIError`` for a
    cluster that cannot be asked, and ``LostLeaseError``; a resource that cannot be listed is said,
    and its charges end only where the cluster's own figures count. Everything is computed from the
    lists, so that it can be done again at any time.
    """
    new = services.uncounted(cluster)
    places = places_of(cluster)
    counts: Counter[str] = Counter()
    if not places:
        return counts
    begun = ledger.read_clock()
    figures = list(figures_of(client, places))
    wanted = resources_in(places)
    look = _Look(cluster, client, lease, places, begun)
    seen = look.over(wanted, counts)
    policy_writes.note_counted(cluster, new, guard=_guard(lease))
    with _guard(lease)():
        usage_comparison.compare(cluster, figures, seen, now=begun)
        _forget_others(cluster, {str(each) for each in wanted})
        _note_whole(cluster, begun, counts)
    return counts


def count_new(cluster: Cluster, client: Client, lease: Lease | None) -> None:
    """Count what is there under names that are new in quotas, and nothing else, if there are any.

    A resource that cannot be listed is said, and the ledger's own charges stand. Raises as
    ``look_over``.
    """
    new = services.uncounted(cluster)
    if not new:
        return
    places, begun = places_of(cluster), ledger.read_clock()
    list(figures_of(client, places))
    due = resources_of(name for quota in new for name in quota.names)
    wanted = {each: where for each, where in resources_in(places).items() if each in due}
    _Look(cluster, client, lease, places, begun).over(wanted, Counter())
    policy_writes.note_counted(cluster, new, guard=_guard(lease))


def try_to_count_new(cluster: Cluster, client: Client, lease: Lease) -> None:
    """Do so where it can be done; what is in the way is the matter of the whole look, later."""
    try:
        count_new(cluster, client, lease)
    except (LostLeaseError, UnauthorizedError, UntrustedError):
        raise
    except APIError as error:
        log.warning("new quotas of %s are not counted yet: %s", cluster, error)
    except Exception:  # as in pass_over
        log.exception("new quotas of %s could not be counted", cluster)


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a cluster: the quotas with its own figures, and when these were asked for."""

    cluster: Cluster
    client: Client
    lease: Lease | None
    places: Mapping[str, NamespaceQuotas]
    begun: dt.datetime

    def over(
        self, wanted: Mapping[GroupVersionResource, Iterable[str]], counts: Counter[str]
    ) -> dict[str, CompleteList]:
        """List these resources and have the ledger hold what is there; counts what came of it."""
        seen: dict[str, CompleteList] = {}
        guard = _guard(self.lease)
        for resource, namespaces in wanted.items():
            _go_on(self.lease)
            found = _list(self.cluster, self.client, resource, self.places, namespaces)
            _go_on(self.lease)
            if found is not None:
                seen[found.resource] = found
                counts += _hold(self.cluster, found, guard)
            else:
                listed = unlisted(self.cluster, resource, self.places, self.begun)
                counts["released"] += end_by_lease(listed, guard=guard)
        return seen


def _forget_others(cluster: Cluster, wanted: Collection[str]) -> None:
    """Drop what is known of resources that no quota counts any more."""
    gone = LedgerPass.objects.filter(cluster=cluster).exclude(resource__in=[*wanted, WHOLE])
    for resource in gone.values_list("resource", flat=True):
        alerts.resolve(cluster, BLIND, resource)
    gone.delete()


def _note_whole(cluster: Cluster, begun: dt.datetime, counts: Counter[str]) -> None:
    done = {
        "started": begun,
        "finished": ledger.read_clock(),
        "counts": dict(counts),
        "trouble": "",
    }
    LedgerPass.objects.update_or_create(cluster=cluster, resource=WHOLE, defaults=done)


def _guard(lease: Lease | None) -> Guard:
    return transaction.atomic if lease is None else lease.guard


def is_due(run: SyncRun) -> bool:
    """Whether a run should look at the ledger, too: after a full pass, and else once a minute."""
    if run.mode != run.Mode.WATCH:
        return run.mode != run.Mode.PREVIEW
    rows = LedgerPass.objects.filter(cluster=run.cluster_id, resource=WHOLE)
    last = rows.values_list("finished", flat=True).first()
    if last is None or ledger.read_clock() - last >= EVERY:
        return True
    return bool(services.uncounted(run.cluster))


def _go_on(lease: Lease | None) -> None:
    if lease is not None:
        lease.renew()


def _list(
    cluster: Cluster,
    client: Client,
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    namespaces: Iterable[str],
) -> CompleteList | None:
    """List a resource; None for one that cannot be listed, which is put on record."""
    try:
        return list_all(cluster, client, resource, places, namespaces)
    except (UnauthorizedError, UntrustedError, UnreachableError):
        raise  # the next resource would fare no better
    except APIError as error:
        if error.code == _TOO_MANY_REQUESTS:
            raise
        _note_trouble(cluster, resource, error)
    return None


def _hold(cluster: Cluster, seen: CompleteList, guard: Guard) -> Counter[str]:
    """Confirm, give back and correct; what vanished in bulk only when a second list says so."""
    names = cluster.name, seen.resource
    orphans = ledger.release_orphans(
        names[0], resource=names[1], seen=seen.objects, list_started=seen.started, guard=guard
    )
    row, _ = LedgerPass.objects.get_or_create(cluster=cluster, resource=seen.resource)
    before = count_vanished(seen)
    is_doubtful = reconcile.brake(before.vanished, before.known) or (
        before.vanished > 0 and not seen.objects
    )
    believe = not is_doubtful or row.doubted is not None
    met = meet(seen, believe=believe, guard=guard)
    # Last, since it makes charges look fresh: as if an update had just been admitted.
    confirmed = ledger.confirm_seen(names[0], resource=names[1], seen=seen.objects, guard=guard)
    counts = Counter(
        confirmed=confirmed,
        added=met.added,
        corrected=met.corrected,
        released=met.released + orphans,
    )
    row.started, row.finished = seen.started, ledger.read_clock()
    row.objects_seen, row.counts, row.trouble = len(seen.objects), dict(counts), ""
    row.doubted = None if believe else seen.started
    with guard():
        row.save()
    alerts.resolve(cluster, BLIND, seen.resource)
    return counts


def _note_trouble(cluster: Cluster, resource: GroupVersionResource, error: APIError) -> None:
    LedgerPass.objects.update_or_create(
        cluster=cluster, resource=str(resource), defaults={"trouble": error.message}
    )
    said = f"{resource} cannot be listed, so what quotas count of them is not confirmed"
    if isinstance(error, ForbiddenError):
        said += "; cluster_manifests prints the permission that is missing"
    alerts.set_alert(
        cluster,
        BLIND,
        # What is not served cannot be there: nothing is hidden from us.
        "" if isinstance(error, NotFoundError) else f"{said}: {error.message}",
        subject=str(resource),
    )
