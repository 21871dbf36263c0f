"""Unlisted resources: charges past their lease end, the cluster's figures become openings.

A cluster that enforces its quotas itself counts every stored object. So the objects of charges
past their lease are in its figure, or were never created. In other clusters such charges stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction

from engine.resource_list import equals, parse, remove_zeros, stored
from policies.db.clock import read_clock
from policies.ledger.book import OPENING_RESOURCE, OPENING_UID
from policies.ledger.namespace_ledger import in_namespace
from policies.ledger.recount import OPEN_STATES
from policies.ledger.release import LIST_MARGIN, ORPHAN_AGE
from policies.ledger.rows import LedgerCause
from policies.models import Charge, LedgerEntry

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from uuid import UUID

    from django.db.models import QuerySet

    from engine.resource_list import ResourceList
    from policies.ledger.namespace_ledger import Guard, NamespaceLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """A resource that cannot be listed, and the cluster's used amounts of it, by quota uid.

    ``read`` is what ``read_clock`` returned before the figures were requested.
    """

    cluster_id: int
    resource: str
    read: dt.datetime
    places: Mapping[UUID, str]
    figures: Mapping[UUID, ResourceList]


def end_by_lease(unlisted: Unlisted, *, guard: Guard = transaction.atomic) -> int:
    """Replace charges past their lease by the cluster's figures; returns how many ended.

    Later charges stay beside the figures, so that no reserved amount is lost. ``guard`` begins one
    short transaction for each changed namespace.
    """
    # Objects of older charges are in the figures already, or were never created.
    lease_end = min(read_clock() - ORPHAN_AGE, unlisted.read - LIST_MARGIN)
    ended_charges = 0
    openings = _openings(unlisted)
    namespaces_moved = {
        unlisted.places[uid]
        for uid, figures in unlisted.figures.items()
        if not equals(_opening_amounts(openings.get(uid, {}), figures), openings.get(uid, {}))
    }
    old = _charges_past_lease(unlisted, lease_end).order_by().values_list("namespace", flat=True)
    figures = LedgerCause(LedgerEntry.Cause.FIGURES)
    for namespace in sorted(namespaces_moved | set(old.distinct())):
        ended_charges += in_namespace(
            (unlisted.cluster_id, namespace),
            partial(_end_in_namespace, unlisted, lease_end),
            cause=figures,
            guard=guard,
        )
    return ended_charges


def _charges_past_lease(unlisted: Unlisted, lease_end: dt.datetime) -> QuerySet[Charge]:
    return Charge.objects.filter(
        cluster_id=unlisted.cluster_id,
        resource=unlisted.resource,
        quota_uid__in=list(unlisted.figures),
        state__in=OPEN_STATES,
        updated__lt=lease_end,
    ).order_by("id")


def _openings(unlisted: Unlisted) -> dict[UUID, ResourceList]:
    opening_rows = Charge.objects.filter(
        cluster_id=unlisted.cluster_id,
        resource=OPENING_RESOURCE,
        object_uid=OPENING_UID,
        quota_uid__in=list(unlisted.figures),
    )
    return {opening_row.quota_uid: parse(opening_row.amounts) for opening_row in opening_rows}


def _opening_amounts(opening: ResourceList, figures: ResourceList) -> ResourceList:
    return stored(remove_zeros({**opening, **figures}))


def _end_in_namespace(unlisted: Unlisted, lease_end: dt.datetime, ledger: NamespaceLedger) -> int:
    past_lease = _charges_past_lease(unlisted, lease_end).filter(namespace=ledger.namespace)
    # Only if the figures have every charged name: other amounts would be lost.
    covered = [
        charge
        for charge in past_lease
        if charge.quota_uid in ledger.quotas
        and charge.amounts.keys() <= unlisted.figures[charge.quota_uid].keys()
    ]
    openings = _openings(unlisted)
    for uid in filter(unlisted.figures.__contains__, ledger.quotas):
        held = openings.get(uid, {})
        balance = _opening_amounts(held, unlisted.figures[uid])
        if not equals(balance, held):
            ledger.set_opening(uid, held, balance)
    return ledger.release(covered)
