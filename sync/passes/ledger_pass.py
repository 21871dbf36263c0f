"""Ledger pass: each resource listed, met with charges; LedgerPass rows, blind alerts, new quotas.

Charges of listed objects are confirmed and corrected to their usage. Charges of admitted objects
that never appeared end with their lease, those of deleted objects at once. An incomplete list
lowers no charge.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import transaction

from engine.resource_quota import resources_of
from policies import services
from policies.db.clock import read_clock
from policies.ledger.live_objects import apply_list, count_vanished
from policies.ledger.release import confirm_seen, release_orphans
from policies.ledger.unlisted import end_by_lease
from policies.models import LedgerPass
from policies.services.brake import brake
from sync import alerts, policy_writes
from sync.errors import (
    APIError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.inventory import usage_comparison
from sync.inventory.observations import (
    figures_of,
    list_all,
    places_of,
    quotas_counting,
    resources_in,
    unlisted,
)
from sync.runs.leases import LostLeaseError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection, Iterable, Mapping
    from contextlib import AbstractContextManager

    from engine.request import GroupVersionResource
    from policies.ledger.live_objects import CompleteList
    from policies.models import Cluster
    from sync.client import Client
    from sync.inventory.observations import NamespaceQuotas
    from sync.models import SyncRun
    from sync.runs.leases import Holder

    Guard = Callable[[], AbstractContextManager[object]]

WHOLE: Final = ""
"""The resource of the ``LedgerPass`` about all resources together."""
BLIND: Final = "ledger-blind"
FAILING: Final = "ledger-failing"
_TOO_MANY_REQUESTS: Final = 429
NAMED: Final = 5
"""The most quotas that an alert names."""
FAILED: Final = "ledger-failed"
"""The name in a run's counts for a failed ledger pass."""
log = logging.getLogger(__name__)


def run_ledger_pass(cluster: Cluster, client: Client, run: SyncRun, lease: Holder) -> Counter[str]:
    """Compare the ledger as the last part of a run, whose policies are synchronized by then.

    A failure is in ``run.error`` and ``run.counts``, raises an alert and leaves the charges as they
    are. Only ``LostLeaseError`` and errors that stop the cluster (credential refused, server not
    trusted) reach the caller.
    """
    try:
        counts = compare_ledger(cluster, client, lease)
    except (LostLeaseError, UnauthorizedError, UntrustedError):
        raise
    except APIError as error:
        _note_failure(run, lease, f"{error.reason}: {error.message}")
        policy_writes.give_up_counting(cluster, error.message)
    except Exception as error:  # a defect here must not stop the synchronization of policies
        log.exception("the ledger of %s could not be held against it", cluster)
        _note_failure(run, lease, f"{type(error).__name__}: {error}")
        policy_writes.give_up_counting(cluster, type(error).__name__)
    else:
        alerts.resolve(cluster, FAILING)
        return counts
    return Counter()


def _note_failure(run: SyncRun, lease: Holder, problem: str) -> None:
    failure_words = f"the usage of quotas was not confirmed, the next run tries again: {problem}"
    run.error = f"{run.error}; {failure_words}" if run.error else failure_words
    run.counts = {**run.counts, FAILED: 1}
    with lease.guard():
        LedgerPass.objects.update_or_create(
            cluster=run.cluster, resource=WHOLE, defaults={"problem": problem}
        )
    alerts.raise_alert(run.cluster, FAILING, severity=alerts.WARNING, message=failure_words)


def compare_ledger(cluster: Cluster, client: Client, lease: Holder | None) -> Counter[str]:
    """Compare the ledger with one complete list of each resource that a quota counts.

    Returns the numbers of charges confirmed, added, corrected and released. Raises ``APIError`` for
    an unreachable cluster, and ``LostLeaseError``. For a resource that cannot be listed there is an
    alert, and its charges end only if the cluster's own figures count. Repeating this is safe: all
    results are computed from the lists.
    """
    new_quotas = services.uncounted(cluster)
    quota_places = places_of(cluster)
    counts: Counter[str] = Counter()
    if not quota_places:
        return counts
    pass_begun = read_clock()
    quota_figures = list(figures_of(client, quota_places))
    wanted_resources = resources_in(quota_places)
    resource_comparison = _ResourceComparison(cluster, client, lease, quota_places, pass_begun)
    complete_lists = resource_comparison.over(wanted_resources, counts)
    policy_writes.note_counted(cluster, new_quotas, guard=_guard_of(lease))
    with _guard_of(lease)():
        usage_comparison.compare(cluster, quota_figures, complete_lists, now=pass_begun)
        _forget_others(cluster, {str(resource) for resource in wanted_resources})
        finished = read_clock()
        done = {"started": pass_begun, "finished": finished, "counts": dict(counts), "problem": ""}
        LedgerPass.objects.update_or_create(cluster=cluster, resource=WHOLE, defaults=done)
    return counts


def count_new(cluster: Cluster, client: Client, lease: Holder | None) -> None:
    """Count existing objects under names that are new in quotas, if there are such names.

    For a resource that cannot be listed, the ledger's own charges stand. Raises as
    ``compare_ledger``.
    """
    new_quotas = services.uncounted(cluster)
    if not new_quotas:
        return
    places, pass_begun = places_of(cluster), read_clock()
    list(figures_of(client, places))  # it stores the figures in the places
    new_resources = resources_of(name for quota in new_quotas for name in quota.names)
    wanted = {each: where for each, where in resources_in(places).items() if each in new_resources}
    _ResourceComparison(cluster, client, lease, places, pass_begun).over(wanted, Counter())
    policy_writes.note_counted(cluster, new_quotas, guard=_guard_of(lease))


def try_to_count_new(cluster: Cluster, client: Client, lease: Holder) -> None:
    """Count new names if possible; a failure is left to the ledger pass at the end of the run."""
    try:
        count_new(cluster, client, lease)
    except (LostLeaseError, UnauthorizedError, UntrustedError):
        raise
    except APIError as error:
        log.warning("new quotas of %s are not counted yet: %s", cluster, error)
    except Exception:  # as in run_ledger_pass
        log.exception("new quotas of %s could not be counted", cluster)


@dataclass(frozen=True, slots=True)
class _ResourceComparison:
    """The parts of one comparison: the quotas with the cluster's figures, and their time."""

    cluster: Cluster
    client: Client
    lease: Holder | None
    places: Mapping[str, NamespaceQuotas]
    begun: dt.datetime

    def over(
        self, wanted_resources: Mapping[GroupVersionResource, Iterable[str]], counts: Counter[str]
    ) -> dict[str, CompleteList]:
        """List resources and update their charges; adds to the counts, returns the lists."""
        complete_lists: dict[str, CompleteList] = {}
        lease_guard = _guard_of(self.lease)
        for resource, namespaces in wanted_resources.items():
            # Lists can be long, and so can the writes that follow.
            _renew(self.lease)
            complete = _list_or_alert(self.cluster, self.client, resource, self.places, namespaces)
            _renew(self.lease)
            if complete is not None:
                complete_lists[complete.resource] = complete
                counts += meet_charges(self.cluster, complete, lease_guard)
            else:
                unlisted_charges = unlisted(self.cluster, resource, self.places, self.begun)
                counts["released"] += end_by_lease(unlisted_charges, guard=lease_guard)
        return complete_lists


def _forget_others(cluster: Cluster, wanted: Collection[str]) -> None:
    """Delete the rows and alerts of resources that no quota counts any more."""
    other_passes = LedgerPass.objects.filter(cluster=cluster).exclude(resource__in=[*wanted, WHOLE])
    for resource in other_passes.values_list("resource", flat=True):
        alerts.resolve(cluster, BLIND, resource)
    other_passes.delete()


def _guard_of(lease: Holder | None) -> Guard:
    return transaction.atomic if lease is None else lease.guard


def is_due(run: SyncRun) -> bool:
    """Whether a run includes the ledger: each but a preview."""
    return bool(run.mode != run.Mode.PREVIEW)


def _renew(lease: Holder | None) -> None:
    if lease is not None:
        lease.renew()


def _list_or_alert(
    cluster: Cluster,
    client: Client,
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    namespaces: Iterable[str],
) -> CompleteList | None:
    """List a resource; None if it cannot be listed, which is stored with an alert."""
    try:
        return list_all(cluster, client, resource, places, namespaces)
    except (UnauthorizedError, UntrustedError, UnreachableError):
        raise  # the next resource would fail as well
    except APIError as error:
        if error.code == _TOO_MANY_REQUESTS:
            raise  # more requests would only add to the server's load
        note_blind(cluster, resource, error, places)
    return None


def note_blind(
    cluster: Cluster,
    resource: GroupVersionResource,
    error: APIError,
    places: Mapping[str, NamespaceQuotas],
) -> None:
    """Store why a resource cannot be listed, with an alert unless it is not served at all."""
    LedgerPass.objects.update_or_create(
        cluster=cluster, resource=str(resource), defaults={"problem": error.message}
    )
    blind_words = f"{resource} cannot be listed: not counted in {_quota_names(resource, places)}"
    if isinstance(error, ForbiddenError):
        command = f"manage.py cluster_manifests {cluster.name}"
        blind_words += f"; {command} prints the permission that is missing"
    # A resource that is not served has no objects that we could miss.
    message = "" if isinstance(error, NotFoundError) else f"{blind_words}: {error.message}"
    alerts.set_alert(cluster, BLIND, message, subject=str(resource))


def _quota_names(resource: GroupVersionResource, places: Mapping[str, NamespaceQuotas]) -> str:
    """The quotas that count a resource, by name; many are cut short."""
    names = sorted(f"{q.namespace}/{q.name}" for _, q in quotas_counting(places, resource))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'quota' if len(names) == 1 else 'quotas'} {', '.join(names[:NAMED])}{more}"


def meet_charges(cluster: Cluster, listed: CompleteList, guard: Guard) -> Counter[str]:
    """Confirm, correct and release the charges of one resource by its complete list."""
    names = cluster.name, listed.resource
    orphans = release_orphans(
        names[0], resource=names[1], seen=listed.objects, list_started=listed.started, guard=guard
    )
    row, _ = LedgerPass.objects.get_or_create(cluster=cluster, resource=listed.resource)
    vanished_before = count_vanished(listed)
    # A list without most known objects may be wrong: releases then wait for a second such list.
    is_doubtful_list = brake(vanished_before.vanished, vanished_before.known) or (
        vanished_before.vanished > 0 and not listed.objects
    )
    believe = not is_doubtful_list or row.doubted is not None
    met_charges = apply_list(listed, believe=believe, guard=guard)
    # Last, since a confirmed charge looks fresh, as if an update had just been admitted.
    confirmed_charges = confirm_seen(names[0], resource=names[1], seen=listed.objects, guard=guard)
    charge_counts = Counter(
        confirmed=confirmed_charges,
        added=met_charges.added,
        corrected=met_charges.corrected,
        released=met_charges.released + orphans,
    )
    row.started, row.finished = listed.started, read_clock()
    row.objects_seen, row.counts, row.problem = len(listed.objects), dict(charge_counts), ""
    row.doubted = None if believe else listed.started
    with guard():
        row.save()
    alerts.resolve(cluster, BLIND, listed.resource)
    return charge_counts
