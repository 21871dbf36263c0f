"""Preview of many manifests: before, after, error, lints; ``store_previews`` saves them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError

from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.resource_quota import decode_resource_quota
from policies import snapshot
from policies.lints import Lint, lint_namespace
from policies.models import LimitRange, MetadataPolicy, Namespace, PolicyObject, PriorityClass
from policies.services.bulk_create import (
    New,
    checked,
    drafted_rows,
    key_of,
    owners_of,
    store_new,
    stored_of,
)
from policies.services.manifests import (
    KINDS,
    OF_CLUSTER,
    apply_manifest,
    ensure_namespace,
    new_object,
    require_namespace,
)
from policies.services.write import in_bulk, last_numbers, policy_write, record_objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from engine.policy import PolicySet
    from policies.models import Cluster, Recorded
    from policies.services.write import Key

    Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One object before and after its manifest is applied, or the error that would prevent it.

    ``stored`` and ``instance`` are the two as models; the latter's rows are drafts.
    """

    key: Key
    stored: Recorded | None = None
    instance: Recorded | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    error: ValidationError | None = None


def preview_many(
    *, cluster: Cluster, manifests: Sequence[Manifest], create_namespaces: bool = False
) -> list[Preview]:
    """Preview what ``apply_manifest`` would do with each manifest, in a fixed number of queries.

    A namespace counts as existing if one of the manifests creates it; with ``create_namespaces``
    every namespace does.
    """
    keys = [key_of(manifest) for manifest in manifests]
    owners = owners_of(cluster, keys)
    wanted = {name for kind, _, name in keys if kind == "Namespace"}
    if create_namespaces:
        wanted |= {namespace for _, namespace, _ in keys if namespace}
    for name in wanted - owners.keys():
        owners[name] = Namespace(cluster=cluster, name=name)
    stored = _stored_by_key(cluster, keys)
    return [
        _preview_one(cluster, key, manifest, stored.get(key), owners)
        for key, manifest in zip(keys, manifests, strict=True)
    ]


def _stored_by_key(cluster: Cluster, keys: Collection[Key]) -> dict[Key, Recorded]:
    """The stored objects of these names, with their rows; one query for each table."""
    stored: dict[Key, Recorded] = {}
    for kind, rows in stored_of(cluster, keys):
        if kind in OF_CLUSTER:
            for row in rows:
                row.cluster = cluster
                stored[kind, "", row.name] = row
        else:
            row_sets = KINDS[kind].row_sets
            for policy in rows.select_related("namespace").prefetch_related(*row_sets):
                policy.namespace.cluster = cluster
                stored[kind, policy.namespace.name, policy.name] = policy
    return stored


def _preview_one(
    cluster: Cluster,
    key: Key,
    manifest: Manifest,
    stored: Recorded | None,
    owners: Mapping[str, Namespace],
) -> Preview:
    before = stored.to_manifest() if stored else None
    kind, namespace, _ = key
    try:
        if stored:
            # A shallow copy is enough: reading a manifest replaces fields and drafts.
            instance: Any = copy.copy(stored)
        else:
            owner = owners.get(namespace)
            if kind not in OF_CLUSTER and owner is None:
                owner = require_namespace(cluster=cluster, name=namespace)
            instance = new_object(cluster, kind, owner)
        if isinstance(instance, PolicyObject):
            instance.forget_drafts()
            instance.replaces = stored if isinstance(stored, type(instance)) else None
        after = checked(instance, manifest)
    except ValidationError as error:
        return Preview(key=key, before=before, error=error)
    return Preview(key=key, stored=stored, instance=instance, before=before, after=after)


def lint_previews(cluster: Cluster, previews: Sequence[Preview]) -> list[Lint]:
    """Lint each namespace as it would be; as many queries as for one."""
    names = sorted({each.key[1] for each in previews} - {""})
    stored = snapshot.load_many(cluster.name, names)
    known = PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    classes = {
        *known,
        *(name for kind, _, name in (each.key for each in previews) if kind == "PriorityClass"),
    }
    lints: list[Lint] = []
    for name in names:
        afters = [each.after for each in previews if each.key[1] == name and each.after]
        lints += lint_namespace(_with_previewed(stored[name], afters), priority_classes=classes)
    return lints


def _with_previewed(policies: PolicySet, manifests: Iterable[Manifest]) -> PolicySet:
    """The policies of a namespace, with these in place of those of the same names."""
    ranges = {each.name: each for each in policies.limit_ranges}
    rules = {each.name: each for each in policies.metadata_policies}
    quotas = {each.name: each for each in policies.resource_quotas}
    for manifest in manifests:
        name = str(manifest["metadata"]["name"])
        if manifest["kind"] == "LimitRange":
            ranges[name] = decode_limit_range(manifest)
        elif manifest["kind"] == "MetadataPolicy":
            rules[name] = decode_metadata_policy(manifest)
        else:
            quota = decode_resource_quota(manifest)
            used = quotas[name].used if name in quotas else quota.used
            quotas[name] = replace(quota, used=used)
    return replace(
        policies,
        limit_ranges=tuple(ranges[name] for name in sorted(ranges)),
        metadata_policies=tuple(rules[name] for name in sorted(rules)),
        resource_quotas=tuple(quotas[name] for name in sorted(quotas)),
    )


def store_previews(
    *,
    cluster: Cluster,
    previews: Sequence[tuple[Preview, Manifest]],
    user: str,
    reason: str = "",
) -> None:
    """Save previewed changes in few statements; unchanged objects are not written.

    Missing namespaces are created. Revisions and opening balances are those of ``apply_manifest``;
    ``preview_many`` has made its checks, so nothing may have been written since (compare
    ``snapshot.revision`` inside ``policy_write``). Raises ``ValidationError``; no lints.
    """
    author = (user, reason)
    with policy_write(cluster), in_bulk():
        news = [
            New(each.key, each.instance, manifest, each.after or {})
            for each, manifest in previews
            if each.before is None
        ]
        # Namespaces first: a policy is stored with the key of its own.
        store_new(cluster, [new for new in news if not new.key[1]], author=author)
        policies = [new for new in news if new.key[1]]
        _link_namespaces(cluster, policies, user=user)
        store_new(cluster, policies, author=author)
        changed = [one for one in previews if one[0].before and one[0].before != one[0].after]
        _change_plain([each for each, _ in changed if _is_plain(each)], author=author)
        for each, manifest in changed:
            if not _is_plain(each):
                apply_manifest(cluster=cluster, manifest=manifest, user=user, reason=reason)


def _link_namespaces(cluster: Cluster, news: Sequence[New], *, user: str) -> None:
    """Link each policy to its stored namespace, and create missing namespaces."""
    owners = owners_of(cluster, [new.key for new in news])
    for new in news:
        name = new.key[1]
        if name not in owners:
            owners[name] = ensure_namespace(cluster=cluster, name=name, user=user)
        new.instance.namespace = owners[name]


def _is_plain(preview: Preview) -> bool:
    """Whether it has rows alone: no ledger, and no effect on a whole cluster."""
    return isinstance(preview.instance, LimitRange | MetadataPolicy)


def _change_plain(previews: Sequence[Preview], *, author: tuple[str, str]) -> None:
    if not previews:
        return
    policies: list[Any] = [each.instance for each in previews]
    numbers = last_numbers(policies[0].owner, [each.key for each in previews])
    for each, policy in zip(previews, policies, strict=True):
        policy.revision = numbers.get(each.key, 0) + 1
    for model in (LimitRange, MetadataPolicy):
        _save_with_rows([policy for policy in policies if isinstance(policy, model)])
    afters = [each.after or {} for each in previews]
    befores = [each.before or {} for each in previews]
    record_objects(policies, afters, author, befores=befores)


def _save_with_rows(policies: Sequence[PolicyObject]) -> None:
    """Save objects of one model with the drafted rows in place of their own."""
    for policy in policies:
        policy.save()
    for row_set in policies[0].row_sets if policies else ():
        field = getattr(policies[0], row_set).field
        manager = field.model._default_manager  # noqa: SLF001 - Django's own API
        manager.filter(**{f"{field.name}__in": policies}).delete()
        # Ranges and metadata policies have one set of rows each.
        manager.bulk_create([row for policy in policies for row in drafted_rows(policy)])
    for policy in policies:
        policy.forget_drafts()
