"""``assemble`` decodes batches of policy rows into each namespace's contents and PolicySet."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.policy import PolicySet
from policies.snapshot.decode import Decoder, Names, known_only
from policies.snapshot.read import as_uuid
from policies.snapshot.values import NamespacePolicies, QuotaKey, authority_of, counts_as_native

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.kubernetes_version import KubernetesVersion
    from engine.policy import Authority, LimitedResource, LimitRange, MetadataPolicy, ResourceQuota
    from policies.snapshot.decode import Row
    from policies.snapshot.read import Policies


class ClusterContext(NamedTuple):
    """A cluster's name and the settings that hold in all its namespaces."""

    cluster: str
    limited_resources: tuple[LimitedResource, ...]
    authority: Authority
    version: KubernetesVersion


@dataclass(slots=True)
class _NamespaceContents:
    limit_ranges: list[LimitRange] = field(default_factory=list)
    metadata_policies: list[MetadataPolicy] = field(default_factory=list)
    resource_quotas: list[ResourceQuota] = field(default_factory=list)
    quota_keys: dict[str, QuotaKey] = field(default_factory=dict)
    is_native: bool = True
    problem: str = ""

    def note(self, names: Names, error: ValueError) -> None:
        """Keep the first error."""
        self.problem = self.problem or f"{names.namespace}/{names.name}: {error}"


def assemble(
    row_batches: Iterable[Policies], clusters: Mapping[int, ClusterContext]
) -> dict[int, dict[str, NamespacePolicies]]:
    """The policies of each namespace that has any, by cluster id and namespace."""
    namespaces_of_cluster: dict[int, dict[str, NamespacePolicies]] = {pk: {} for pk in clusters}
    decoder = Decoder()
    for row_batch in row_batches:
        for namespace_id, contents in _contents_by_namespace(row_batch, decoder).items():
            namespace_row = row_batch.places[namespace_id]
            context = clusters[namespace_row.cluster_id]
            policy_set = PolicySet(
                cluster=context.cluster,
                namespace=namespace_row.name,
                limit_ranges=_by_name(contents.limit_ranges),
                metadata_policies=_by_name(contents.metadata_policies),
                resource_quotas=_by_name(contents.resource_quotas),
                limited_resources=context.limited_resources,
                authority=authority_of(context.authority, is_native=contents.is_native),
                version=context.version,
            )
            namespaces_of_cluster[namespace_row.cluster_id][namespace_row.name] = NamespacePolicies(
                policy_set=policy_set,
                is_native=contents.is_native,
                quota_keys=contents.quota_keys,
                problem=contents.problem,
            )
    return namespaces_of_cluster


def as_of(
    namespaces: Mapping[str, NamespacePolicies], context: ClusterContext
) -> Mapping[str, NamespacePolicies]:
    """Update known namespaces to the present settings of their cluster.

    Returns the same namespaces where none changed.
    """
    changed = {}
    for namespace, namespace_policies in namespaces.items():
        authority = authority_of(context.authority, is_native=namespace_policies.is_native)
        policy_set, limited = namespace_policies.policy_set, context.limited_resources
        settings = (authority, limited, context.version)
        if (policy_set.authority, policy_set.limited_resources, policy_set.version) != settings:
            policy_set = replace(
                policy_set, authority=authority, limited_resources=limited, version=context.version
            )
            changed[namespace] = replace(namespace_policies, policy_set=policy_set)
    return {**namespaces, **changed} if changed else namespaces


def _contents_by_namespace(row_batch: Policies, decoder: Decoder) -> dict[int, _NamespaceContents]:
    """Decode all policies; an undecodable one makes only its own namespace unreadable."""
    by_id: dict[int, _NamespaceContents] = defaultdict(_NamespaceContents)
    for policy_row, names, contents in _named_rows(row_batch.limit_ranges, row_batch, by_id):
        try:
            limit_range = decoder.limit_range(names, row_batch.items.get(policy_row[0], ()))
            contents.limit_ranges.append(limit_range)
            contents.is_native &= counts_as_native(names.enforcement, is_native=policy_row[5])
        except ValueError as error:
            contents.note(names, error)
    for policy_row, names, contents in _named_rows(row_batch.metadata_policies, row_batch, by_id):
        ratchet, strict = policy_row[5:]
        rules = row_batch.rules.get(policy_row[0], ())
        try:
            rejects = decoder.metadata_policy(names, rules, ratchet=ratchet, strict=strict)
            # No ``is_native``: metadata policies are always the portal's.
            contents.metadata_policies.append(rejects)
        except ValueError as error:
            contents.note(names, error)
    for policy_row, names, contents in _named_rows(row_batch.resource_quotas, row_batch, by_id):
        try:
            contents.resource_quotas.append(_decoded_quota(decoder, row_batch, names, policy_row))
            contents.quota_keys[names.name] = QuotaKey(policy_row[0], as_uuid(policy_row[5]))
            contents.is_native &= counts_as_native(names.enforcement, is_native=policy_row[6])
        except ValueError as error:
            contents.note(names, error)
    return by_id


def _named_rows(
    policy_rows: list[Row], row_batch: Policies, by_id: Mapping[int, _NamespaceContents]
) -> Iterator[tuple[Row, Names, _NamespaceContents]]:
    for policy_row in policy_rows:
        _, namespace_id, name, enforcement, revision, *_ = policy_row
        namespace = row_batch.places[namespace_id].name
        yield policy_row, Names(namespace, name, enforcement, revision), by_id[namespace_id]


def _decoded_quota(decoder: Decoder, batch: Policies, names: Names, row: Row) -> ResourceQuota:
    quota_id, *_, uncounted, scopes, has_selector = row
    expressions = batch.expressions.get(quota_id)
    quota = decoder.resource_quota(
        names,
        batch.hard.get(quota_id, ()),
        scopes=scopes,
        expressions=expressions or (() if has_selector else None),
    )
    return known_only(quota, uncounted)


def _by_name(named_policies: list[Any]) -> tuple[Any, ...]:
    # By the bytes of their names: databases do not agree on the order of texts.
    return tuple(sorted(named_policies, key=lambda named_policy: named_policy.name.encode()))
