"""PolicySets of namespaces from decoded rows, quota keys, authority, limitedResources."""

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

    from engine.policy import Authority, LimitedResource, LimitRange, MetadataPolicy, ResourceQuota
    from policies.snapshot.decode import Row
    from policies.snapshot.read import Policies


class ClusterContext(NamedTuple):
    """A cluster's name, limited resources and authority, which hold in all its namespaces."""

    cluster: str
    limited_resources: tuple[LimitedResource, ...]
    authority: Authority


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
    batches: Iterable[Policies], clusters: Mapping[int, ClusterContext]
) -> dict[int, dict[str, NamespacePolicies]]:
    """The policies of each namespace that has any, by cluster id and namespace."""
    result: dict[int, dict[str, NamespacePolicies]] = {pk: {} for pk in clusters}
    decoder = Decoder()
    for batch in batches:
        for namespace_id, contents in _contents_by_namespace(batch, decoder).items():
            place = batch.places[namespace_id]
            now = clusters[place.cluster_id]
            policy_set = PolicySet(
                cluster=now.cluster,
                namespace=place.name,
                limit_ranges=_by_name(contents.limit_ranges),
                metadata_policies=_by_name(contents.metadata_policies),
                resource_quotas=_by_name(contents.resource_quotas),
                limited_resources=now.limited_resources,
                authority=authority_of(now.authority, is_native=contents.is_native),
            )
            result[place.cluster_id][place.name] = NamespacePolicies(
                policy_set=policy_set,
                is_native=contents.is_native,
                quota_keys=contents.quota_keys,
                problem=contents.problem,
            )
    return result


def as_of(
    namespaces: Mapping[str, NamespacePolicies], now: ClusterContext
) -> Mapping[str, NamespacePolicies]:
    """Update known namespaces to their cluster's present limited resources and authority.

    Returns the same namespaces where neither changed.
    """
    changed = {}
    for name, known in namespaces.items():
        authority = authority_of(now.authority, is_native=known.is_native)
        policy_set, limited = known.policy_set, now.limited_resources
        if policy_set.authority is not authority or policy_set.limited_resources != limited:
            policy_set = replace(policy_set, authority=authority, limited_resources=limited)
            changed[name] = replace(known, policy_set=policy_set)
    return {**namespaces, **changed} if changed else namespaces


def _contents_by_namespace(batch: Policies, decoder: Decoder) -> dict[int, _NamespaceContents]:
    """Decode all policies; an undecodable one makes only its own namespace unreadable."""
    contents: dict[int, _NamespaceContents] = defaultdict(_NamespaceContents)
    for row, names, place in _named_rows(batch.limit_ranges, batch, contents):
        try:
            policy = decoder.limit_range(names, batch.items.get(row[0], ()))
            place.limit_ranges.append(policy)
            place.is_native &= counts_as_native(names.enforcement, is_native=row[5])
        except ValueError as error:
            place.note(names, error)
    for row, names, place in _named_rows(batch.metadata_policies, batch, contents):
        ratchet, strict = row[5:]
        rules = batch.rules.get(row[0], ())
        try:
            rejects = decoder.metadata_policy(names, rules, ratchet=ratchet, strict=strict)
            # No ``is_native``: metadata policies are always the portal's.
            place.metadata_policies.append(rejects)
        except ValueError as error:
            place.note(names, error)
    for row, names, place in _named_rows(batch.resource_quotas, batch, contents):
        try:
            place.resource_quotas.append(_decoded_quota(decoder, batch, names, row))
            place.quota_keys[names.name] = QuotaKey(row[0], as_uuid(row[5]))
            place.is_native &= counts_as_native(names.enforcement, is_native=row[6])
        except ValueError as error:
            place.note(names, error)
    return contents


def _named_rows(
    rows: list[Row], batch: Policies, contents: Mapping[int, _NamespaceContents]
) -> Iterator[tuple[Row, Names, _NamespaceContents]]:
    for row in rows:
        _, namespace_id, name, enforcement, revision, *_ = row
        namespace = batch.places[namespace_id].name
        yield row, Names(namespace, name, enforcement, revision), contents[namespace_id]


def _decoded_quota(decoder: Decoder, batch: Policies, names: Names, row: Row) -> ResourceQuota:
    pk, *_, uncounted, scopes, has_selector = row
    expressions = batch.expressions.get(pk)
    quota = decoder.resource_quota(
        names,
        batch.hard.get(pk, ()),
        scopes=scopes,
        expressions=expressions or (() if has_selector else None),
    )
    return known_only(quota, uncounted)


def _by_name(policies: list[Any]) -> tuple[Any, ...]:
    # By the bytes of their names: databases do not agree on the order of texts.
    return tuple(sorted(policies, key=lambda policy: policy.name.encode()))
