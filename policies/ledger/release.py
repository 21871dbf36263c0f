"""Charges of objects seen, gone or orphaned: confirm or release in each namespace's ledger.

Each function first locks the usage of a namespace's quotas, in id order, as admission does, in one
short transaction for each namespace. Do not call them inside a transaction of your own: it would
hold the locks of several namespaces out of order.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models.functions import Now

from engine.resource_list import stored, to_json
from policies.db.clock import read_clock
from policies.ledger.book import (
    OPENING_NAME,
    OPENING_RESOURCE,
    OPENING_UID,
    require_transaction,
    statements,
)
from policies.ledger.namespace_ledger import in_namespace
from policies.ledger.recount import OPEN_STATES, settle
from policies.models import Charge, Cluster

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


def _in_each_namespace(
    charges: QuerySet[Charge],
    work: Callable[[NamespaceLedger], int],
    guard: Guard = transaction.atomic,
) -> int:
    """Do the work in every namespace that has such charges; returns the sum.

    ``guard`` begins each short transaction, or raises.
    """
    charged_places = charges.order_by().values_list("cluster_id", "namespace").distinct()
    return sum(in_namespace(*place, work, guard) for place in sorted(charged_places))


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
        ledger.mark(object_charges, Charge.State.CONFIRMED)
        for charge in object_charges:
            seen_amounts = (amounts or {}).get(charge.quota_uid)
            if seen_amounts is not None:
                ledger.move(charge, wanted := stored(seen_amounts))
                same_charge = Charge.objects.filter(cluster_id=charge.cluster_id, pk=charge.pk)
                same_charge.update(amounts=to_json(wanted))
        return len(object_charges)

    return _in_each_namespace(charges, work)


def confirm_seen(
    cluster: str, *, resource: str, seen: Collection[str], guard: Guard = transaction.atomic
) -> int:
    """Confirm the reservations of objects that exist, by uid; returns how many that were.

    Their amounts stay as reserved. ``guard`` begins each namespace's transaction.
    """
    waiting = _open_charges(cluster, resource=resource, state=Charge.State.RESERVED)
    uids = frozenset(seen)

    def work(ledger: NamespaceLedger) -> int:
        seen_reservations = [charge for charge in ledger.read(waiting) if charge.object_uid in uids]
        ledger.mark(seen_reservations, Charge.State.CONFIRMED)
        return len(seen_reservations)

    return _in_each_namespace(waiting, work, guard)


def release(cluster: str, *, resource: str, uid: str) -> int:
    """Release the charges of a deleted object; returns how many that were."""
    charges = _open_charges(cluster, resource=resource, object_uid=uid)
    return _in_each_namespace(charges, lambda ledger: ledger.release(ledger.read(charges)))


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

    return _in_each_namespace(waiting, work, guard)


def _open_charges(cluster: str, **which: object) -> QuerySet[Charge]:
    open_charges = Charge.objects.filter(cluster_id=_id_of(cluster), state__in=OPEN_STATES)
    return open_charges.filter(**which)


def _id_of(cluster: str) -> int:
    """A cluster's id; 0, which none has, for an unknown one."""
    return Cluster.objects.filter(name=cluster).values_list("id", flat=True).first() or 0


def set_opening_balance(quota: ResourceQuota, amounts: ResourceList) -> None:
    """Set a quota's usage before the ledger began; the quota must be locked or new."""
    Charge.objects.update_or_create(
        cluster=quota.owner,
        quota_uid=quota.uid,
        resource=OPENING_RESOURCE,
        object_uid=OPENING_UID,
        defaults={
            "namespace": quota.namespace_name,
            "object_name": OPENING_NAME,
            "amounts": to_json(amounts),
            "state": Charge.State.CONFIRMED,
            "updated": Now(),
        },
    )
    settle(quota)
