"""PolicySets of few namespaces from stored models: ``load``, ``load_quotas``, ``has_cluster``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from engine.kubernetes_version import KubernetesVersion, stored_version
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.policy import (
    Authority,
    Enforcement,
    InAPIServer,
    LimitedResource,
    PolicySet,
    ResourceQuota,
)
from engine.policy import LimitRange as EngineLimitRange
from engine.policy import MetadataPolicy as EngineMetadataPolicy
from engine.resource_quota import decode_resource_quota
from engine.selector import ScopeSelectorRequirement
from policies.models import Cluster, CompilablePolicy, PolicyObject
from policies.models import LimitedResource as StoredLimitedResource
from policies.models import LimitRange as StoredLimitRange
from policies.models import MetadataPolicy as StoredMetadataPolicy
from policies.models import ResourceQuota as StoredQuota
from policies.snapshot.values import authority_of, counts_as_native

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.db.models import QuerySet

T = TypeVar("T", bound=PolicyObject)
P = TypeVar("P", EngineLimitRange, EngineMetadataPolicy, ResourceQuota)


def has_cluster(name: str) -> bool:
    """Whether a cluster of this name is stored; ``load`` accepts any name."""
    return Cluster.objects.filter(name=name).exists()


def load(cluster: str, namespace: str) -> PolicySet:
    """Read the policy set of one namespace in eight queries.

    An unknown cluster or namespace has no policies of its own.
    """
    return load_many(cluster, [namespace])[namespace]


def load_many(cluster: str, namespaces: Collection[str]) -> dict[str, PolicySet]:
    """Read the policy sets of some namespaces; as many queries as for one."""
    ranges = _by_namespace(StoredLimitRange.objects.all(), cluster, namespaces)
    metadata_rules = _by_namespace(StoredMetadataPolicy.objects.all(), cluster, namespaces)
    quotas = _by_namespace(StoredQuota.objects.select_related("usage"), cluster, namespaces)
    entries = StoredLimitedResource.objects.filter(cluster__name=cluster).order_by("position")
    limited = tuple(_decode_limited(entry) for entry in entries)
    authority_setting, version = _settings(
        cluster, [each for by_namespace in (ranges, quotas) for each in by_namespace.values()]
    )
    return {
        name: PolicySet(
            cluster=cluster,
            namespace=name,
            limit_ranges=tuple(
                _with_revision(decode_limit_range(stored.to_manifest()), stored)
                for stored in ranges[name]
            ),
            metadata_policies=tuple(
                _with_revision(decode_metadata_policy(stored.to_manifest()), stored)
                for stored in metadata_rules[name]
            ),
            resource_quotas=tuple(decode_stored_quota(quota) for quota in quotas[name]),
            limited_resources=limited,
            authority=authority_of(
                authority_setting,
                is_native=all(
                    counts_as_native(each.enforcement, is_native=each.is_native)
                    for each in (*ranges[name], *quotas[name])
                ),
            ),
            version=version,
        )
        for name in namespaces
    }


def _settings(
    cluster: str, stored: Collection[Sequence[PolicyObject]]
) -> tuple[Authority, KubernetesVersion]:
    """The cluster's authority and version; with a query only if no policy has joined its cluster.

    An unknown cluster has the defaults.
    """
    joined = (policy.owner for policies in stored for policy in policies)
    found = next(joined, None) or Cluster.objects.filter(name=cluster).first() or Cluster()
    return Authority(found.authority), stored_version(found.kubernetes_version)


def load_quotas(cluster: str, namespace: str) -> tuple[ResourceQuota, ...]:
    """Read the quotas of one namespace with their present used amounts, in name order."""
    quotas = _by_namespace(StoredQuota.objects.select_related("usage"), cluster, [namespace])
    return tuple(decode_stored_quota(quota) for quota in quotas[namespace])


def decode_stored_quota(quota: StoredQuota) -> ResourceQuota:
    """Decode one quota, its rows fetched, to the engine's value; ``used`` is the ledger's."""
    stored_manifest = {**quota.to_manifest(), "status": quota.status()}
    return _with_revision(decode_resource_quota(stored_manifest), quota)


def _by_namespace(
    queryset: QuerySet[T], cluster: str, namespaces: Collection[str]
) -> dict[str, list[T]]:
    """Fetch policies with their rows, in byte order of names, which databases do not agree on."""
    stored_policies = (
        queryset.filter(namespace__name__in=namespaces, namespace__cluster__name=cluster)
        .select_related("namespace__cluster")
        .prefetch_related(*queryset.model.row_sets)
        .order_by()
    )
    by_namespace: dict[str, list[T]] = {name: [] for name in namespaces}
    for policy in sorted(stored_policies, key=lambda policy: policy.name.encode()):
        by_namespace[policy.namespace_name].append(policy)
    return by_namespace


def _with_revision(policy: P, stored: PolicyObject) -> P:
    enforcement = Enforcement(stored.enforcement)
    found = replace(policy, revision=stored.revision, enforcement=enforcement)
    if isinstance(stored, CompilablePolicy) and not isinstance(found, ResourceQuota):
        found = replace(found, in_api_server=InAPIServer(stored.in_api_server))
    return found


def limited_resources_of(clusters: Collection[int]) -> dict[int, tuple[LimitedResource, ...]]:
    """Read the limited resources by cluster id, each list in its order; one query."""
    entries = StoredLimitedResource.objects.filter(cluster__in=clusters).order_by("position")
    limited_by_cluster: dict[int, tuple[LimitedResource, ...]] = dict.fromkeys(clusters, ())
    for entry in entries:
        limited_by_cluster[entry.cluster_id] += (_decode_limited(entry),)
    return limited_by_cluster


def _decode_limited(entry: StoredLimitedResource) -> LimitedResource:
    return LimitedResource(
        resource=entry.resource,
        api_group=entry.api_group,
        match_contains=tuple(entry.match_contains),
        match_scopes=tuple(
            ScopeSelectorRequirement(
                scope.get("scopeName") or "",
                scope.get("operator") or "",
                tuple(scope.get("values") or ()),
            )
            for scope in entry.match_scopes
        ),
    )
