"""Charges of objects seen, gone or orphaned: confirm or release in each namespace's ledger.

Each function first locks the usage of a namespace's quotas, in id order, as admission does, in one
short transaction for each namespace. Do not call them inside a transaction of your own: it would
hold the locks of several namespaces out of order.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import transaction

from engine.resource_list import parse
from policies.db.clock import read_clock
from policies.ledger.book import OPENING_RESOURCE, OPENING_UID, require_transaction, statements
from policies.ledger.namespace_ledger import in_namespace
from policies.ledger.recount import OPEN_STATES, opening_row, settle
from policies.ledger.rows import LedgerCause
from policies.models import Charge, Cluster, LedgerEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from django.db.models import QuerySet

    from engine.resource_list import ResourceList
    from policies.ledger.namespace_ledger import Guard, NamespaceLedger
    from policies.models import ResourceQuota

ORPHAN_AGE: Final = dt.timedelta(seconds=120)
"""The lease of a reservation: after it an object that was not seen was not created."""
LIST_MARGIN: Final = dt.timedelta(seconds=60)
"""A list may lack what was admitted so shortly before it began."""
_LIST: Final = LedgerCause(LedgerEntry.Cause.LIST)


def _in_each_namespace(
    charges: QuerySet[Charge],
    work: Callable[[NamespaceLedger], int],
    *,
    cause: LedgerCause,
    guard: Guard = transaction.atomic,
) -> int:
    """Do the work in every namespace that has such charges; returns the sum.

    ``guard`` begins each short transaction, or raises.
    """
    charged_places = sorted(charges.order_by().values_list("cluster_id", "namespace").distinct())
    return sum(in_namespace(place, work, cause=cause, guard=guard) for place in charged_places)


def lock_quotas(cluster: str, namespace: str) -> None:
    """Lock the usage of all quotas of a namespace, in id order, until the transaction ends.

    Must run inside ``atomic``. SQLite has locked the database already (immediate transactions).
    """
    require_transaction()
    statements().lock_namespace(_id_of(cluster), namespace)


def confirm(
    cluster: str, *, resource: str, uid: str, amounts: dict[UUID, ResourceList] | None = None
) -> int:
    """Confirm the charges of an object that exists; returns how many it has.

    ``amounts``, by quota uid, replace the charged ones. Locks the quotas of its namespace.
    """
    charges = _open_charges(cluster, resource=resource, object_uid=uid)

    def work(ledger: NamespaceLedger) -> int:
        object_charges = ledger.read(charges)
        seen_amounts = amounts or {}
        ledger.confirm([row for row in object_charges if row.quota_uid not in seen_amounts])
        for charge in object_charges:
            if charge.quota_uid in seen_amounts:
                ledger.resize(charge, seen_amounts[charge.quota_uid], state=Charge.State.CONFIRMED)
        return len(object_charges)

    return _in_each_namespace(charges, work, cause=_LIST)


def confirm_seen(
    cluster: str, *, resource: str, seen: Collection[str], guard: Guard = transaction.atomic
) -> int:
    """Confirm the reservations of objects that exist, by uid; returns how many that were.

    Their amounts stay as reserved. ``guard`` begins each namespace's transaction.
    """
    waiting = _open_charges(cluster, resource=resource, state=Charge.State.RESERVED)
    uids = frozenset(seen)

    def work(ledger: NamespaceLedger) -> int:
        return ledger.confirm([row for row in ledger.read(waiting) if row.object_uid in uids])

    return _in_each_namespace(waiting, work, cause=_LIST, guard=guard)


def release(cluster: str, *, resource: str, uid: str, user: str = "") -> int:
    """Release the charges of an object that a person knows to be gone; returns how many."""
    charges = _open_charges(cluster, resource=resource, object_uid=uid)
    by_hand = LedgerCause(LedgerEntry.Cause.PERSON, user)
    return _in_each_namespace(
        charges, lambda ledger: ledger.release(ledger.read(charges)), cause=by_hand
    )


def release_orphans(
    cluster: str,
    *,
    list_started: dt.datetime,
    seen: Collection[str],
    resource: str = "pods",
    guard: Guard = transaction.atomic,
) -> int:
    """Release reservations whose objects were never created; returns how many that were.

    Call it only with a complete list of all objects of ``resource``: ``seen`` are their uids,
    ``list_started`` is what ``read_clock`` returned before the list was requested. It releases what
    is unconfirmed, was reserved more than 120 s ago and more than 60 s before the list began, and
    is not on it. ``guard`` begins each namespace's transaction.
    """
    # An admitted object appears in the cluster only later: the margins cover that delay.
    latest_reserved = min(read_clock() - ORPHAN_AGE, list_started - LIST_MARGIN)
    waiting = _open_charges(
        cluster, resource=resource, state=Charge.State.RESERVED, reserved_at__lt=latest_reserved
    )
    uids = frozenset(seen)

    def work(ledger: NamespaceLedger) -> int:
        return ledger.release([row for row in ledger.read(waiting) if row.object_uid not in uids])

    lease_ended = LedgerCause(LedgerEntry.Cause.LEASE)
    return _in_each_namespace(waiting, work, cause=lease_ended, guard=guard)


def _open_charges(cluster: str, **which: object) -> QuerySet[Charge]:
    open_charges = Charge.objects.filter(cluster_id=_id_of(cluster), state__in=OPEN_STATES)
    return open_charges.filter(**which)


def _id_of(cluster: str) -> int:
    """A cluster's id; 0, which none has, for an unknown one."""
    return Cluster.objects.filter(name=cluster).values_list("id", flat=True).first() or 0


def set_opening_balance(quota: ResourceQuota, amounts: ResourceList) -> None:
    """Set a quota's usage before the ledger began; the quota must be locked or new."""
    openings = Charge.objects.filter(
        cluster=quota.owner,
        quota_uid=quota.uid,
        resource=OPENING_RESOURCE,
        object_uid=OPENING_UID,
    )
    held = openings.values_list("amounts", flat=True).first() or {}
    statements().write((), [opening_row(quota, quota.owner.pk, amounts, before=parse(held))])
    settle(quota)
