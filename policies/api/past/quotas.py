"""QuotaOfThen: the quotas that a user may see, with the levels of an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import DecodeError
from engine.resource_quota import decode_resource_quota
from policies import history, roles
from policies.ledger.usage import Level, levels_of
from policies.models import ResourceQuota

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence


class QuotaOfThen(NamedTuple):
    """A quota at an instant; ``pk`` is None where it was deleted since."""

    pk: int | None
    cluster: str
    namespace: str
    levels: Sequence[Level]


def past_quotas(user: Any, instant: dt.datetime) -> Iterator[QuotaOfThen]:
    """The quotas of an instant by namespace; a fixed number of queries.

    Those of rules that hold no more have no level to show.
    """
    writes = history.revisions_at(history.clusters_seen(user), instant)
    rows = history.in_force(writes, kinds=[ResourceQuota.kind])
    rows = roles.visible(rows, user, cluster="cluster", namespace="namespace")
    found = history.objects_of(rows)
    used = history.used_of(found, instant)
    rows_now = ResourceQuota.objects.order_by()
    numbers = {str(uid): pk for uid, pk in rows_now.values_list("uid", "pk")}
    for each in sorted(found, key=lambda each: (each.namespace, each.cluster, each.name.encode())):
        try:
            quota = decode_resource_quota(history.with_status(each, used[each.uid]))
        except DecodeError:
            continue
        levels = levels_of(quota, used[each.uid])
        yield QuotaOfThen(numbers.get(each.uid), each.cluster, each.namespace, levels)
