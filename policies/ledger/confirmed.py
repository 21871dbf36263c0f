"""``confirmed_amounts``: what quotas use without their reservations; few statements for many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import FilteredRelation, Q

from engine.resource_list import mask, parse, subtract_with_non_negative_result
from policies.models import Charge, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from engine.quantity import Quantity

_CHUNK: Final = 500
"""Quotas in one statement."""


def confirmed_amounts(
    cluster_id: int, quota_ids: Collection[int]
) -> dict[int, dict[str, Quantity]]:
    """The confirmed amounts of some quotas by quota id and tracked name, opening balances included.

    A quota without usage is left out. Both parts of a quota come from one statement: a reservation
    that is confirmed meanwhile counts in neither or in both.
    """
    confirmed: dict[int, dict[str, Quantity]] = {}
    ids = sorted(quota_ids)
    for first in range(0, len(ids), _CHUNK):
        # Few charges are reserved at any time, so the sum is not read from all the others.
        for quota_id, used, reserved in _usage_rows(cluster_id, ids[first : first + _CHUNK]):
            total = confirmed[quota_id] if quota_id in confirmed else parse(used)
            held = mask(parse(reserved or {}), total)
            confirmed[quota_id] = subtract_with_non_negative_result(total, held) if held else total
    return confirmed


def _usage_rows(cluster_id: int, quota_ids: Collection[int]) -> Iterable[tuple[int, Any, Any]]:
    """Id, used amounts, and those of one reservation or None: a row for each reservation."""
    is_reserved = Q(
        quota__charges__cluster_id=cluster_id, quota__charges__state=Charge.State.RESERVED
    )
    usage = QuotaUsage.objects.filter(cluster_id=cluster_id, quota_id__in=quota_ids).order_by()
    joined = usage.annotate(reserved=FilteredRelation("quota__charges", condition=is_reserved))
    return joined.values_list("quota_id", "used", "reserved__amounts").iterator()
