"""``used_at``: what quotas used at an instant, from their charges now and the ledger's journal.

The journal is read backwards from the present: what was charged since is taken off. The database
puts equal entries together, so that a namespace with thousands of equal pods costs a few lines.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from django.db.models import Count, TextField
from django.db.models.functions import Cast

from engine.quantity import Quantity
from engine.resource_list import add, parse, remove_zeros, subtract
from policies.models import Charge, Cluster, LedgerEntry, ResourceQuota

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator
    from uuid import UUID

    from engine.resource_list import ResourceList
    from policies.models.ledger_entry import LedgerEntryQuerySet

# A recount corrects what a fault had left in ``used``: the charges, which count here, were right.
_WITHOUT_GROWTH = (LedgerEntry.Action.CONFIRM, LedgerEntry.Action.RECOUNT)
_OPEN = (Charge.State.RESERVED, Charge.State.CONFIRMED)


def used_at(
    quota_uids: Collection[UUID], instant: dt.datetime, *, without: str = ""
) -> dict[UUID, ResourceList]:
    """What each quota used at an instant, by name; four queries at most for any number of quotas.

    Names that nothing was charged to are left out: they were 0, or not counted yet. Names that a
    quota has no more today count as well. ``without`` is the uid of an object that does not count.
    """
    totals = _charged_now(quota_uids, without)
    ended = _of_deleted_clusters([uid for uid, total in totals.items() if not total])
    entries = LedgerEntry.objects.exclude(action__in=_WITHOUT_GROWTH)
    if without:
        entries = entries.exclude(object_uid=without)
    later = entries.filter(quota_uid__in=totals.keys() - ended, created__gt=instant)
    for uid, growth in _growth(later):
        totals[uid] = subtract(totals[uid], growth)
    if ended:
        # Its charges went with the cluster, and no entry says so: count from the first one on.
        for uid, growth in _growth(entries.filter(quota_uid__in=ended, created__lte=instant)):
            totals[uid] = add(totals[uid], growth)
    return {uid: remove_zeros(total) for uid, total in totals.items()}


def growth_between(
    begin: dt.datetime, end: dt.datetime, *, namespace: str = ""
) -> dict[UUID, ResourceList]:
    """By how much, by the journal, the amounts of quotas changed that did; one query."""
    entries = LedgerEntry.objects.exclude(action__in=_WITHOUT_GROWTH)
    entries = entries.filter(created__gt=begin, created__lte=end)
    if namespace:
        entries = entries.filter(namespace=namespace)
    totals: dict[UUID, ResourceList] = {}
    for uid, growth in _growth(entries):
        totals[uid] = add(totals.get(uid, {}), growth)
    moved = {uid: remove_zeros(total) for uid, total in totals.items()}
    return {uid: growth for uid, growth in moved.items() if growth}


def _charged_now(quota_uids: Collection[UUID], without: str) -> dict[UUID, ResourceList]:
    totals: dict[UUID, ResourceList] = {uid: {} for uid in quota_uids}
    charges = Charge.objects.filter(quota_uid__in=quota_uids, state__in=_OPEN).order_by()
    if without:
        charges = charges.exclude(object_uid=without)
    equal = charges.values_list("quota_uid", "amounts").annotate(times=Count("pk"))
    for uid, amounts, times in equal:
        totals[uid] = add(totals[uid], _times(parse(amounts), times))
    return totals


def _of_deleted_clusters(quota_uids: Collection[UUID]) -> set[UUID]:
    """Those of some quotas that were charged in a cluster that is deleted."""
    if not quota_uids:
        return set()
    rows = ResourceQuota.objects.filter(uid__in=quota_uids).order_by()
    known = rows.values_list("uid", flat=True)
    gone = LedgerEntry.objects.filter(quota_uid__in=set(quota_uids) - set(known))
    gone = gone.exclude(cluster_id__in=Cluster.objects.values("pk")).order_by()
    return set(gone.values_list("quota_uid", flat=True).distinct())


def _growth(entries: LedgerEntryQuerySet) -> Iterator[tuple[UUID, ResourceList]]:
    """By how much entries changed what quotas use; the database counts the equal ones.

    Equal amounts that came and went cancel out as texts, and the others are parsed once: in a span
    most objects come and go, and those of one kind have equal amounts.
    """
    texts = {name: Cast(name, TextField()) for name in ("before", "after")}
    equal = entries.order_by().values("quota_uid", came=texts["after"], went=texts["before"])
    numbers: Counter[tuple[UUID, str]] = Counter()
    for uid, came, went, times in equal.annotate(times=Count("*")).values_list(
        "quota_uid", "came", "went", "times"
    ):
        numbers[uid, came] += times
        numbers[uid, went] -= times
    parsed: dict[str, ResourceList] = {}
    for (uid, text), times in numbers.items():
        if not times:
            continue
        if text not in parsed:
            parsed[text] = parse(json.loads(text))
        yield uid, _times(parsed[text], times)


def _times(amounts: ResourceList, number: int) -> ResourceList:
    return {name: Quantity(each.nano * number, each.format) for name, each in amounts.items()}
