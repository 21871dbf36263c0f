"""QuotaOfThen: the quotas that a user may see, with the levels of an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import DecodeError
from engine.resource_quota import decode_resource_quota, is_tracked
from policies import history, roles
from policies.ledger.usage import Level, levels_of
from policies.models import ResourceQuota

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from policies.history import PastObject


class QuotaOfThen(NamedTuple):
    """A quota at an instant; ``pk`` is None where it was deleted since."""

    pk: int | None
    cluster: str
    namespace: str
    levels: Sequence[Level]


def past_quotas(
    user: Any, instant: dt.datetime, *, cluster: str | None = None, namespace: str | None = None
) -> list[PastObject]:
    """The quotas of an instant that have levels, by namespace; a fixed number of queries.

    Those of rules that hold no more have no level to show.
    """
    seen = [name for name in history.clusters_seen(user) if cluster in {None, name}]
    rows = history.in_force(history.revisions_at(seen, instant), kinds=[ResourceQuota.kind])
    rows = roles.visible(rows, user, cluster="cluster", namespace="namespace")
    if namespace is not None:
        rows = rows.filter(namespace=namespace)
    found = [each for each in history.objects_of(rows) if _has_levels(each)]
    return sorted(found, key=lambda each: (each.namespace, each.cluster, each.name.encode()))


def levels_then(quotas: Sequence[PastObject], instant: dt.datetime) -> Iterator[QuotaOfThen]:
    """Quotas with the levels of an instant, in their order; a fixed number of queries."""
    used = history.used_of(quotas, instant)
    rows_now = ResourceQuota.objects.filter(uid__in=used).order_by()
    numbers = {str(uid): pk for uid, pk in rows_now.values_list("uid", "pk")}
    for each in quotas:
        quota = decode_resource_quota(history.with_status(each, used[each.uid]))
        levels = levels_of(quota, used[each.uid])
        yield QuotaOfThen(numbers.get(each.uid), each.cluster, each.namespace, levels)


def _has_levels(quota: PastObject) -> bool:
    try:
        return any(is_tracked(name) for name in decode_resource_quota(quota.manifest).hard)
    except DecodeError:
        return False
