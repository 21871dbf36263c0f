"""The quotas of one namespace under their row locks, charged by plain ORM calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.resource_list import add, mask, max_of, parse, stored, subtract, to_json
from policies.ledger import object_key
from policies.models import Charge, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from engine.decision import Charge as DecidedCharge
    from engine.policy import ResourceQuota as QuotaValue
    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList


def open_book(cluster: str, request: AdmissionRequest) -> Book:
    """Lock the namespace's used amounts in id order, then read this object's own charges."""
    found = QuotaUsage.objects.filter(cluster__name=cluster, namespace=request.namespace)
    locked = found.order_by("quota_id").select_related("quota")
    rows = list(locked.select_for_update(no_key=True, of=("self",)))
    if not rows:
        return Book()
    resource, uid = object_key(request)
    charges = Charge.objects.filter(
        cluster_id=rows[0].cluster_id,
        resource=resource,
        object_uid=uid,
        quota_uid__in=[row.quota_uid for row in rows],
    )
    return Book({row.quota.name: row for row in rows}, {c.quota_uid: c for c in charges})


@dataclass(slots=True)
class Book:
    """Locked used amounts by the quota's name, and this object's charges by the quota's uid."""

    rows: dict[str, QuotaUsage] = field(default_factory=dict)
    charges: dict[UUID, Charge] = field(default_factory=dict)

    def as_it_stands(self, quota: QuotaValue) -> QuotaValue:
        """The quota with what is used now, without this very object."""
        row = self.rows.get(quota.name)
        if row is None:
            return quota
        return replace(quota, used=subtract(parse(row.used), mask(self._held(row), row.used)))

    def _held(self, row: QuotaUsage) -> ResourceList:
        charge = self.charges.get(row.quota_uid)
        if charge is None or charge.state == Charge.State.RELEASED:
            return {}
        return parse(charge.amounts)

    def charge(self, request: AdmissionRequest, decided: Iterable[DecidedCharge]) -> None:
        """Write what an allowed request costs: absolute amounts, which never shrink here."""
        resource, uid = object_key(request)
        for entry in decided:
            row = self.rows[entry.quota.name]
            held = self._held(row)
            wanted = stored(max_of(entry.amounts, held))
            charge = self.charges.get(row.quota_uid) or Charge(
                cluster_id=row.cluster_id,
                quota_uid=row.quota_uid,
                namespace=row.namespace,
                resource=resource,
                object_uid=uid,
                object_name=request.display_name,
            )
            charge.amounts, charge.state = to_json(wanted), Charge.State.RESERVED
            charge.save()
            used = add(parse(row.used), mask(subtract(wanted, held), row.used))
            row.used = to_json(stored(used))
            row.save(update_fields=["used"])
