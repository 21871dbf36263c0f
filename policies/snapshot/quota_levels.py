"""QuotasInPlace: quotas with their worst level, from the snapshot and the ledger; one query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from json import loads
from typing import TYPE_CHECKING

from django.db.models import TextField
from django.db.models.functions import Cast

from policies import roles
from policies.ledger.usage import Level, levels_of, worst
from policies.models import QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from engine.policy import ResourceQuota
    from policies.snapshot.values import ClusterPolicies


@dataclass(frozen=True, slots=True)
class QuotasInPlace:
    """A namespace with its quotas and the worst level of each."""

    cluster: str
    namespace: str
    quotas: Sequence[tuple[ResourceQuota, Level]]

    @property
    def worst(self) -> Level:
        """The level that needs attention most."""
        return max((level for _, level in self.quotas), key=lambda level: level.rank)


class _Same:
    """A quota by identity, as a cache key: the snapshot keeps the same object until it changes."""

    __slots__ = ("value",)

    def __init__(self, value: ResourceQuota) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def visible_quotas(
    clusters: Mapping[str, ClusterPolicies], user: Any, *, search: str = ""
) -> list[QuotasInPlace]:
    """Namespaces with quotas that the user may see, by name; ``search`` is a part of the name."""
    return sorted(
        (
            each
            for each in quotas_by_namespace(clusters)
            if search in each.namespace and roles.sees(user, each.cluster, each.namespace)
        ),
        key=lambda each: (each.namespace, each.cluster),
    )


def quotas_by_namespace(clusters: Mapping[str, ClusterPolicies]) -> Iterator[QuotasInPlace]:
    """Every namespace with a quota that bounds anything, in no order; one query."""
    keys = [each.id for each in clusters.values()]
    # As text, which serves as a cache key; it is decoded only when it has changed.
    usages = QuotaUsage.objects.filter(cluster__in=keys).annotate(text=Cast("used", TextField()))
    used = dict(usages.order_by().values_list("quota_id", "text"))
    for cluster in clusters.values():
        for name, found in cluster.namespaces.items():
            # Unreadable policies cannot be decoded: there is no level to show.
            if not found.quota_keys or found.problem:
                continue
            levels = [
                (quota, level)
                for quota in found.policy_set.resource_quotas
                if (
                    level := _worst_of(
                        _Same(quota), used.get(found.quota_keys[quota.name].id, "{}")
                    )
                )
            ]
            if levels:
                yield QuotasInPlace(cluster.name, name, levels)


@lru_cache(maxsize=16_384)
def _worst_of(quota: _Same, used: str) -> Level | None:
    """The worst level of a quota; cached, since most quotas of a board do not change."""
    return worst(levels_of(quota.value, loads(used)))
