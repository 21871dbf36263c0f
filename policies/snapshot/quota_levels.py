"""QuotasInPlace, PlacedQuota: quotas with their levels, from snapshot and ledger; one query."""

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
    from policies.snapshot.values import ClusterPolicies, NamespacePolicies, QuotaKey


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


@dataclass(frozen=True, slots=True)
class PlacedQuota:
    """One quota in its place, with the levels of all its resources, and the keys of its rows."""

    cluster: str
    cluster_id: int
    namespace: str
    quota: ResourceQuota
    key: QuotaKey
    levels: Sequence[Level]


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


def visible_placed(clusters: Mapping[str, ClusterPolicies], user: Any) -> list[PlacedQuota]:
    """Every quota that bounds anything and that the user may see, in no order; one query."""
    used, sees_all = _used_texts(clusters), roles.sees_all(user)
    return [
        PlacedQuota(cluster.name, cluster.id, name, quota, key, levels)
        for cluster, name, found in _readable(clusters)
        if sees_all or roles.sees(user, cluster.name, name)
        for quota in found.policy_set.resource_quotas
        if (key := found.quota_keys.get(quota.name))
        and (levels := _levels_of(_Same(quota), used.get(key.id, "{}")))
    ]


def quotas_by_namespace(clusters: Mapping[str, ClusterPolicies]) -> Iterator[QuotasInPlace]:
    """Every namespace with a quota that bounds anything, in no order; one query."""
    used = _used_texts(clusters)
    for cluster, name, found in _readable(clusters):
        levels = [
            (quota, level)
            for quota in found.policy_set.resource_quotas
            if (level := _worst_of(_Same(quota), used.get(found.quota_keys[quota.name].id, "{}")))
        ]
        if levels:
            yield QuotasInPlace(cluster.name, name, levels)


def _used_texts(clusters: Mapping[str, ClusterPolicies]) -> dict[int, str]:
    """The used amounts by quota; as text, which is a cache key and rarely needs to be decoded."""
    keys = [each.id for each in clusters.values()]
    usages = QuotaUsage.objects.filter(cluster__in=keys).annotate(text=Cast("used", TextField()))
    return dict(usages.order_by().values_list("quota_id", "text"))


def _readable(
    clusters: Mapping[str, ClusterPolicies],
) -> Iterator[tuple[ClusterPolicies, str, NamespacePolicies]]:
    """Namespaces with quotas; unreadable policies cannot be decoded, there is no level to show."""
    for cluster in clusters.values():
        for name, found in cluster.namespaces.items():
            if found.quota_keys and not found.problem:
                yield cluster, name, found


@lru_cache(maxsize=16_384)
def _worst_of(quota: _Same, used: str) -> Level | None:
    """The worst level of a quota; cached, since most quotas of a board do not change."""
    return worst(_levels_of(quota, used))


@lru_cache(maxsize=16_384)
def _levels_of(quota: _Same, used: str) -> tuple[Level, ...]:
    return tuple(levels_of(quota.value, loads(used)))
