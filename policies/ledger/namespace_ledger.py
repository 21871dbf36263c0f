"""NamespaceLedger: the charges of one namespace with its quotas locked; ``in_namespace`` runs work.

A namespace is one short transaction: admissions to other namespaces do not wait. Do not call
``in_namespace`` inside a transaction of your own: it would hold the locks of several namespaces out
of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db import transaction
from django.db.models.functions import Now

from engine.resource_list import parse, stored
from policies.ledger.book import CONFIRMED, LONGEST_NAME, lock_namespace, statements
from policies.ledger.rows import NewCharge, text_of
from policies.models import Charge, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager
    from uuid import UUID

    from django.db.models import QuerySet

    from engine.resource_list import ResourceList
    from policies.ledger.book import Quota

    Guard = Callable[[], AbstractContextManager[object]]

Result = TypeVar("Result")


class _QuotaCameBackError(Exception):
    """A quota was created or restored after the others of its namespace were locked."""


class NamespaceLedger:
    """The charges of one namespace, its quotas locked."""

    def __init__(self, cluster_id: int, namespace: str) -> None:
        self.cluster_id, self.namespace = cluster_id, namespace
        self.quotas: Mapping[UUID, Quota] = lock_namespace(cluster_id, namespace)
        self._gone: set[UUID] = set()
        self._added: list[NewCharge] = []

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

    def move(self, charge: Charge, wanted: ResourceList) -> None:
        """Count in the quota the new amounts of a charge instead of its own."""
        quota = self.quotas.get(charge.quota_uid)
        if quota is not None:
            quota.move(parse(charge.amounts), wanted)

    def mark(self, charges: Collection[Charge], state: str) -> None:
        """Change the state of charges."""
        rows = Charge.objects.filter(cluster_id=self.cluster_id, pk__in=[row.pk for row in charges])
        rows.update(state=state, updated=Now())

    def release(self, charges: Collection[Charge]) -> int:
        """Release charges; returns how many."""
        if charges:
            for charge in charges:
                self.move(charge, {})
            self.mark(charges, Charge.State.RELEASED)
        return len(charges)

    def add(
        self, quota_uid: UUID, resource: str, object_uid: str, name: str, amounts: ResourceList
    ) -> None:
        """Charge an object that exists to a locked quota that does not charge it."""
        quota, counted = self.quotas[quota_uid], stored(amounts)
        quota.move({}, counted)
        quota_place = (self.cluster_id, quota.uid, self.namespace)
        charged_object = (resource, object_uid, name[:LONGEST_NAME])
        self._added.append(NewCharge(*quota_place, *charged_object, text_of(counted), CONFIRMED))

    def write(self) -> None:
        """Write what changed; raises ``_QuotaCameBackError`` if a deleted quota was restored."""
        changed_usage = [quota.row() for quota in self.quotas.values() if quota.changed]
        if changed_usage or self._added:
            statements().write(changed_usage, self._added)
        # A quota that was restored meanwhile counts these charges: repeat the work with its lock.
        restored = QuotaUsage.objects.filter(cluster_id=self.cluster_id, quota_uid__in=self._gone)
        if self._gone and restored.exists():
            raise _QuotaCameBackError


def in_namespace(
    cluster_id: int,
    namespace: str,
    work: Callable[[NamespaceLedger], Result],
    guard: Guard = transaction.atomic,
) -> Result:
    """Do the work in a transaction; again, if a quota was restored meanwhile.

    ``guard`` begins the transaction, or raises.
    """
    while True:
        try:
            with guard():
                ledger = NamespaceLedger(cluster_id, namespace)
                result = work(ledger)
                ledger.write()
                return result
        except _QuotaCameBackError:
            continue
