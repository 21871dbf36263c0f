"""The quotas of one namespace under their row locks, charged by plain ORM calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from policies.engine.quantity import ZERO
from policies.engine.resource_list import max_of, parse, stored, subtract, to_json
from policies.fields import QuantityValue
from policies.models import Charge, ResourceQuota
from policies.usage import object_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.engine.decision import Charge as DecidedCharge
    from policies.engine.policy import ResourceQuota as QuotaValue
    from policies.engine.request import AdmissionRequest


def open_book(cluster: str, request: AdmissionRequest) -> Book:
    """Lock the namespace's quotas in id order, then read what this object was charged before."""
    found = ResourceQuota.objects.filter(
        namespace__cluster__name=cluster, namespace__name=request.namespace
    )
    locked = found.select_related("namespace").order_by("id")
    quotas = list(locked.select_for_update(no_key=True, of=("self",)).prefetch_related("rows"))
    resource, uid = object_key(request)
    charges = Charge.objects.filter(quota__in=quotas, resource=resource, object_uid=uid)
    return Book({q.name: q for q in quotas}, {c.quota_id: c for c in charges if c.quota_id})


@dataclass(slots=True)
class Book:
    """Locked quotas by name, and this object's charges by the quota's id."""

    quotas: dict[str, ResourceQuota] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)

    def as_it_stands(self, quota: QuotaValue) -> QuotaValue:
        """The quota with what is used now, without this very object."""
        row = self.quotas.get(quota.name)
        if row is None:
            return quota
        used = {r.resource: r.used.quantity for r in row.rows.all() if r.used is not None}
        return replace(quota, used=subtract(used, self._held(row)))

    def _held(self, quota: ResourceQuota) -> dict:
        charge = self.charges.get(quota.pk)
        if charge is None or charge.state == Charge.State.RELEASED:
            return {}
        return parse(charge.amounts)

    def charge(self, request: AdmissionRequest, decided: Iterable[DecidedCharge]) -> None:
        """Write what an allowed request costs: absolute amounts, which never shrink here."""
        resource, uid = object_key(request)
        for entry in decided:
            quota = self.quotas[entry.quota.name]
            held = self._held(quota)
            wanted = stored(max_of(entry.amounts, held))
            row = self.charges.get(quota.pk) or Charge(
                cluster_id=quota.namespace.cluster_id,
                quota=quota,
                quota_uid=quota.uid,
                namespace=quota.namespace.name,
                resource=resource,
                object_uid=uid,
                object_name=request.display_name,
            )
            row.amounts, row.state = to_json(wanted), Charge.State.RESERVED
            row.save()
            self._move_used(quota, subtract(wanted, held))

    def _move_used(self, quota: ResourceQuota, steps: dict) -> None:
        for row in quota.rows.all():
            step = steps.get(row.resource, ZERO)
            if row.used is not None and step.sign:
                row.used = QuantityValue(str((row.used.quantity + step).stored()))
                row.save(update_fields=["used"])
