"""``take_in`` of SeenObjects, as a watch tells of them: confirmed, corrected, added, released.

An object that exists is charged what it uses, and never less. The charges of a deleted object are
released at once, since its uid never comes back. What a watch may have missed, or never sees, is
released by lists alone: reservations of objects that were never created by ``release_missing``.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db import transaction

from engine.resource_list import parse, remove_zeros
from policies.db.clock import read_clock
from policies.ledger.arithmetic import corrected, same_amounts
from policies.ledger.book import CONFIRMED, RELEASED, RESERVED
from policies.ledger.live_objects import LedgerChanges
from policies.ledger.namespace_ledger import in_namespace
from policies.ledger.recount import OPEN_STATES
from policies.ledger.release import LIST_MARGIN
from policies.ledger.rows import LedgerCause
from policies.models import Charge, LedgerEntry, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from engine.resource_list import ResourceList
    from policies.ledger.namespace_ledger import Guard, NamespaceLedger

CREATE_MARGIN: Final = dt.timedelta(seconds=10)
"""A list may lack an object that was admitted so shortly before it began: other webhooks, whose
timeout is usually this long, may still be asked about it."""
_MOST_UIDS: Final = 500  # of one query


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenObject:
    """An object in an event: what each quota counts of it, by quota uid; None if unknown.

    ``is_gone``: it is deleted. ``is_final``: no admitted update can raise its usage any more.
    """

    uid: str
    name: str
    namespace: str
    counted: Mapping[UUID, ResourceList] | None
    is_gone: bool = False
    is_final: bool = False


class _Wanted(NamedTuple):
    """What a charge should be; it has to wait for its ``lower`` amounts if that is set."""

    state: str
    amounts: ResourceList
    is_too_early: bool = False


def take_in(  # noqa: PLR0913 - most by name
    cluster_id: int,
    resource: str,
    seen: Sequence[SeenObject],
    *,
    received: dt.datetime,
    margin: dt.timedelta = LIST_MARGIN,
    guard: Guard = transaction.atomic,
    names: Mapping[UUID, Collection[str]] | None = None,
) -> LedgerChanges:
    """Bring the ledger in line with events of one resource, in their order.

    ``received`` is what ``read_clock`` returned before the events were read from their watch.
    Amounts shrink only where no admitted update can be under way, which may take ``margin``: those
    that have to wait are in
    the result's ``recheck``, for another call with the newest known object. ``guard`` begins one
    short transaction for each namespace with news, or raises. ``names``, by quota uid, are those
    under which the objects count, by the policies that ``counted`` was computed with; without it
    these must be the present policies. Repeating events is safe, as long as it is in order.
    """
    latest = _latest_by_uid(seen)
    if names is None:
        names = _names_now(cluster_id, {each.namespace for each in latest.values()})
    watched = _Watched(cluster_id, resource, received, margin, names, latest)
    changes = LedgerChanges()
    for namespace in sorted(watched.find_news(changes.recheck)):
        place = (cluster_id, namespace)
        met = in_namespace(
            place, watched.settle, cause=LedgerCause(LedgerEntry.Cause.WATCH), guard=guard
        )
        changes.confirmed += met.confirmed
        changes.added += met.added
        changes.corrected += met.corrected
        changes.released += met.released
        changes.recheck |= met.recheck
    return changes


def release_gone(
    cluster_id: int,
    resource: str,
    gone: Mapping[str, str],
    *,
    guard: Guard = transaction.atomic,
) -> int:
    """Release the charges of deleted objects, given as namespaces by uid; returns how many.

    Quicker than ``take_in``: nothing about policies or clocks has to be read. A uid never comes
    back, so that a deletion can be believed at once. ``guard`` begins a transaction for each
    namespace with such charges, or raises.
    """
    cause, released = LedgerCause(LedgerEntry.Cause.WATCH), 0
    open_charges = Charge.objects.filter(
        cluster_id=cluster_id, resource=resource, state__in=OPEN_STATES
    )
    for uids in _portions(gone):
        charges = open_charges.filter(object_uid__in=uids)
        work = partial(_release_all, charges)
        for namespace in sorted(set(charges.order_by().values_list("namespace", flat=True))):
            released += in_namespace((cluster_id, namespace), work, cause=cause, guard=guard)
    return released


def _release_all(charges: QuerySet[Charge], ledger: NamespaceLedger) -> int:
    return ledger.release(ledger.read(charges))


def with_overdue(cluster_ids: Collection[int], *, older_than: dt.timedelta) -> set[int]:
    """Those of these clusters that have reservations of that age."""
    waiting = Charge.objects.filter(
        cluster_id__in=cluster_ids, state=RESERVED, reserved_at__lt=read_clock() - older_than
    )
    return set(waiting.order_by().values_list("cluster_id", flat=True).distinct())


def due_orphans(
    cluster_id: int, *, older_than: dt.timedelta
) -> dict[tuple[str, str], frozenset[str]]:
    """Find reservations of that age whose objects were not seen: uids by resource and namespace.

    They are released by ``release_missing`` with a list that begins after this call.
    """
    waiting = Charge.objects.filter(
        cluster_id=cluster_id, state=RESERVED, reserved_at__lt=read_clock() - older_than
    )
    uids_by_place: dict[tuple[str, str], set[str]] = defaultdict(set)
    rows = waiting.order_by().values_list("resource", "namespace", "object_uid")
    for resource, namespace, uid in rows.distinct():
        uids_by_place[resource, namespace].add(uid)
    return {place: frozenset(uids) for place, uids in sorted(uids_by_place.items())}


def release_missing(  # noqa: PLR0913 - most by name
    cluster_id: int,
    resource: str,
    namespace: str,
    present_uids: Collection[str],
    *,
    list_started: dt.datetime,
    margin: dt.timedelta = CREATE_MARGIN,
    guard: Guard = transaction.atomic,
) -> int:
    """Release reservations of a namespace whose objects were not created; returns how many.

    ``present_uids`` are all objects of a complete list, read from the API server's storage and not
    from its cache; ``list_started`` is what ``read_clock`` returned before it was requested. Only
    what was reserved ``margin`` before that is released: so long may a create be under way.
    Confirmed charges stay: their objects are known, and so is their end.
    """
    waiting = Charge.objects.filter(
        cluster_id=cluster_id,
        resource=resource,
        state=RESERVED,
        reserved_at__lt=list_started - margin,
    )
    present = frozenset(present_uids)

    def work(ledger: NamespaceLedger) -> int:
        return ledger.release(
            [row for row in ledger.read(waiting) if row.object_uid not in present]
        )

    lease_ended = LedgerCause(LedgerEntry.Cause.LEASE)
    return in_namespace((cluster_id, namespace), work, cause=lease_ended, guard=guard)


def _latest_by_uid(seen: Sequence[SeenObject]) -> dict[str, SeenObject]:
    """The last event of each object; nothing follows a deletion."""
    latest: dict[str, SeenObject] = {}
    for each in seen:
        earlier = latest.get(each.uid)
        if earlier is None or not earlier.is_gone:
            latest[each.uid] = each
    return latest


def _names_now(cluster_id: int, namespaces: Collection[str]) -> dict[UUID, Collection[str]]:
    usage_rows = QuotaUsage.objects.filter(cluster_id=cluster_id, namespace__in=namespaces)
    return dict(usage_rows.values_list("quota_uid", "used"))


def _portions(uids: Collection[str]) -> Iterator[list[str]]:
    all_uids = list(uids)
    for start in range(0, len(all_uids), _MOST_UIDS):
        yield all_uids[start : start + _MOST_UIDS]


@dataclass(frozen=True, slots=True)
class _Watched:
    """The newest events of some objects, and what follows from them."""

    cluster_id: int
    resource: str
    received: dt.datetime
    margin: dt.timedelta
    names: Mapping[UUID, Collection[str]]
    latest: Mapping[str, SeenObject]

    def find_news(self, recheck: dict[str, dt.datetime]) -> set[str]:
        """Find the namespaces where something has to be written, without a lock."""
        with_news: set[str] = set()
        charged_pairs: set[tuple[UUID, str]] = set()
        for uids in _portions(self.latest):
            for charge in self._charges(uids):
                charged_pairs.add((charge.quota_uid, charge.object_uid))
                wanted = self._wanted(charge)
                if wanted.is_too_early:
                    recheck[charge.object_uid] = charge.updated + self.margin
                if _differs(charge, wanted):
                    with_news.add(charge.namespace)
        for uid, found in self.latest.items():
            counted = () if found.is_gone else found.counted or ()
            if any((quota_uid, uid) not in charged_pairs for quota_uid in counted):
                with_news.add(found.namespace)
        return with_news

    def settle(self, ledger: NamespaceLedger) -> LedgerChanges:
        """Confirm, correct, release and add the charges of one namespace."""
        met, charged_pairs = LedgerChanges(), set()
        gone: list[Charge] = []
        there = [uid for uid, one in self.latest.items() if one.namespace == ledger.namespace]
        for uids in _portions(there):
            # Read again under the lock: the charges may have changed since the search without it.
            for charge in ledger.read(self._charges(uids)):
                charged_pairs.add((charge.quota_uid, charge.object_uid))
                if self.latest[charge.object_uid].is_gone:
                    gone.append(charge)
                else:
                    self._correct(ledger, charge, met)
        met.released = ledger.release(gone)
        met.added = self._add(ledger, there, charged_pairs)
        return met

    def _charges(self, uids: Collection[str]) -> QuerySet[Charge]:
        return Charge.objects.filter(
            cluster_id=self.cluster_id,
            resource=self.resource,
            object_uid__in=uids,
            state__in=OPEN_STATES,
        ).order_by("id")

    def _wanted(self, charge: Charge) -> _Wanted:
        """What a charge should be by the newest event of its object."""
        found, held = self.latest[charge.object_uid], parse(charge.amounts)
        if found.is_gone:
            return _Wanted(RELEASED, held)
        if found.counted is None:
            return _Wanted(CONFIRMED, held)
        counted = found.counted.get(charge.quota_uid, {})
        names = self.names.get(charge.quota_uid, ())
        right = corrected(held, counted, names=names, lowers=True)
        # An update that was admitted shortly before may be missing in the event.
        is_certain = found.is_final or charge.updated < self.received - self.margin
        amounts = right if is_certain else corrected(held, counted, names=names, lowers=False)
        # An empty charge has nothing to confirm or to release later.
        state = CONFIRMED if remove_zeros(amounts) else RELEASED
        return _Wanted(state, amounts, is_too_early=not same_amounts(amounts, right))

    def _correct(self, ledger: NamespaceLedger, charge: Charge, met: LedgerChanges) -> None:
        wanted = self._wanted(charge)
        if wanted.is_too_early:
            met.recheck[charge.object_uid] = charge.updated + self.margin
        if not _differs(charge, wanted):
            return
        if same_amounts(wanted.amounts, parse(charge.amounts)):
            met.confirmed += ledger.confirm([charge])
        else:
            met.corrected += ledger.resize(charge, wanted.amounts, state=wanted.state)

    def _add(
        self,
        ledger: NamespaceLedger,
        there: Collection[str],
        charged_pairs: Collection[tuple[UUID, str]],
    ) -> int:
        """Charge objects without a charge: admitted without the portal, or released too early."""
        added = 0
        for found in map(self.latest.__getitem__, there):
            counted = {} if found.is_gone else found.counted or {}
            for quota_uid, amounts in counted.items():
                is_charged = (quota_uid, found.uid) in charged_pairs
                if quota_uid in ledger.quotas and not is_charged:
                    ledger.add(quota_uid, self.resource, found.uid, found.name, amounts)
                    added += 1
        return added


def _differs(charge: Charge, wanted: _Wanted) -> bool:
    return charge.state != wanted.state or not same_amounts(wanted.amounts, parse(charge.amounts))
