"""NamespaceLedger: the charges of one namespace with its quotas locked; ``in_namespace`` runs work.

A namespace is one short transaction: admissions to other namespaces do not wait. Do not call
``in_namespace`` inside a transaction of your own: it would hold the locks of several namespaces out
of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db import transaction
from django.db.models.functions import Now

from engine.resource_list import parse, stored, to_json
from policies.ledger.book import (
    CONFIRMED,
    LONGEST_NAME,
    NOTHING,
    OPENING_NAME,
    OPENING_RESOURCE,
    OPENING_UID,
    RELEASED,
    lock_namespace,
    statements,
    stored_uid,
)
from policies.ledger.rows import LedgerCause, NewCharge, NewEntry, json_text, text_of
from policies.models import Charge, LedgerEntry, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from uuid import UUID

    from django.db.models import QuerySet

    from engine.resource_list import ResourceList
    from policies.ledger.book import Quota

    Guard = Callable[[], AbstractContextManager[object]]

Result = TypeVar("Result")
Action = LedgerEntry.Action


class _QuotaCameBackError(Exception):
    """A quota was created or restored after the others of its namespace were locked."""


class NamespaceLedger:
    """The charges of one namespace, its quotas locked; every change is also in the journal."""

    def __init__(self, cluster_id: int, namespace: str, cause: LedgerCause) -> None:
        self.cluster_id, self.namespace, self.cause = cluster_id, namespace, cause
        self.quotas: Mapping[UUID, Quota] = lock_namespace(cluster_id, namespace)
        self._gone: set[UUID] = set()
        self._added: list[NewCharge] = []
        self._entries: list[NewEntry] = []

    def read(self, charges: QuerySet[Charge]) -> list[Charge]:
        """Read the namespace's charges; those without a locked quota are locked themselves."""
        charges = charges.filter(namespace=self.namespace)
        all_charges = list(charges.order_by("id"))
        unguarded = [charge for charge in all_charges if charge.quota_uid not in self.quotas]
        if not unguarded:
            return all_charges
        # Their quotas are deleted. Where one is restored meanwhile, ``write`` notices.
        self._gone.update(charge.quota_uid for charge in unguarded)
        guarded = [charge for charge in all_charges if charge.quota_uid in self.quotas]
        locked = charges.filter(pk__in=[charge.pk for charge in unguarded]).order_by("id")
        return [*guarded, *locked.select_for_update(no_key=True)]

    def confirm(self, charges: Collection[Charge]) -> int:
        """Confirm charges, whose amounts stay; returns how many."""
        if charges:
            self._mark(charges, CONFIRMED)
            for charge in charges:
                self._note(charge, Action.CONFIRM, json_text(charge.amounts))
        return len(charges)

    def release(self, charges: Collection[Charge]) -> int:
        """Release charges; returns how many."""
        if charges:
            self._mark(charges, RELEASED)
            for charge in charges:
                self._move(charge, {})
                self._note(charge, Action.RELEASE, NOTHING)
        return len(charges)

    def resize(self, charge: Charge, wanted: ResourceList, *, state: str) -> int:
        """Give a charge other amounts, and this state; returns one."""
        wanted = stored(wanted)
        self._move(charge, wanted if state != RELEASED else {})
        after = text_of(wanted) if state != RELEASED else NOTHING
        self._note(charge, Action.RESIZE if after != NOTHING else Action.RELEASE, after)
        same_charge = Charge.objects.filter(cluster_id=self.cluster_id, pk=charge.pk)
        return same_charge.update(state=state, amounts=to_json(wanted), updated=Now())

    def add(
        self, quota_uid: UUID, resource: str, object_uid: str, name: str, amounts: ResourceList
    ) -> None:
        """Charge an object that exists to a locked quota that does not charge it."""
        charged_object = (resource, object_uid, name[:LONGEST_NAME])
        self._put(quota_uid, charged_object, {}, amounts, Action.ADD)

    def set_opening(self, quota_uid: UUID, held: ResourceList, wanted: ResourceList) -> None:
        """Replace the opening balance of a locked quota."""
        opening = (OPENING_RESOURCE, OPENING_UID, OPENING_NAME)
        self._put(quota_uid, opening, held, wanted, Action.OPENING)

    def write(self) -> None:
        """Write what changed; raises ``_QuotaCameBackError`` if a deleted quota was restored."""
        changed_usage = [quota.row() for quota in self.quotas.values() if quota.changed]
        if changed_usage or self._added:
            statements().write(changed_usage, self._added)
        statements().append(self._entries)
        # A quota that was restored meanwhile counts these charges: repeat the work with its lock.
        restored = QuotaUsage.objects.filter(cluster_id=self.cluster_id, quota_uid__in=self._gone)
        if self._gone and restored.exists():
            raise _QuotaCameBackError

    def _move(self, charge: Charge, wanted: ResourceList) -> None:
        """Count in the quota the new amounts of a charge instead of its own."""
        quota = self.quotas.get(charge.quota_uid)
        if quota is not None:
            quota.move(parse(charge.amounts), wanted)

    def _mark(self, charges: Collection[Charge], state: str) -> None:
        rows = Charge.objects.filter(cluster_id=self.cluster_id, pk__in=[row.pk for row in charges])
        rows.update(state=state, updated=Now())

    def _note(self, charge: Charge, action: Action, after: str) -> None:
        quota_place = (self.cluster_id, stored_uid(charge.quota_uid), self.namespace)
        charged_object = (charge.resource, charge.object_uid, charge.object_name)
        before = json_text(charge.amounts)
        self._entries.append(
            NewEntry(*quota_place, *charged_object, action.value, before, after, *self.cause)
        )

    def _put(
        self,
        quota_uid: UUID,
        charged_object: tuple[str, str, str],
        held: ResourceList,
        wanted: ResourceList,
        action: Action,
    ) -> None:
        quota, wanted = self.quotas[quota_uid], stored(wanted)
        quota.move(held, wanted)
        quota_place = (self.cluster_id, quota.uid, self.namespace)
        amounts_text, before = text_of(wanted), text_of(held)
        entry_columns = (before, action.value, *self.cause)
        self._added.append(
            NewCharge(*quota_place, *charged_object, amounts_text, CONFIRMED, *entry_columns)
        )


def in_namespace(
    place: tuple[int, str],
    work: Callable[[NamespaceLedger], Result],
    *,
    cause: LedgerCause,
    guard: Guard = transaction.atomic,
) -> Result:
    """Do the work on a namespace of a cluster in a transaction.

    It is repeated if a quota was restored meanwhile. ``guard`` begins the transaction, or raises.
    """
    while True:
        try:
            with guard():
                ledger = NamespaceLedger(*place, cause)
                result = work(ledger)
                ledger.write()
                return result
        except _QuotaCameBackError:
            continue
