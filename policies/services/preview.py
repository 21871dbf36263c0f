"""Preview of many manifests: before, after, error, lints; ``store_previews`` saves the changes."""

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
from policies.models import KeptTest, Namespace, PolicyObject, PriorityClass
from policies.services.bulk_change import Change, change_many
from policies.services.bulk_create import (
    New,
    checked,
    key_of,
    owners_of,
    store_new,
    stored_of,
)
from policies.services.kept_tests import overfull, too_many
from policies.services.manifests import (
    OF_CLUSTER,
    OF_NAMESPACE,
    apply_manifest,
    ensure_namespace,
    new_object,
    require_namespace,
)
from policies.services.write import in_bulk, policy_write

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
    new_namespaces = {name for kind, _, name in keys if kind == "Namespace"}
    if create_namespaces:
        new_namespaces |= {namespace for _, namespace, _ in keys if namespace}
    for name in new_namespaces - owners.keys():
        owners[name] = Namespace(cluster=cluster, name=name)
    stored = stored_by_key(cluster, keys)
    full = overfull(cluster, [key for key in keys if key not in stored])
    return [
        Preview(key=key, error=too_many(key[1]))
        if key[1] in full and key[0] == KeptTest.kind and key not in stored
        else _preview_one(cluster, key, manifest, stored.get(key), owners)
        for key, manifest in zip(keys, manifests, strict=True)
    ]


def stored_by_key(cluster: Cluster, keys: Collection[Key]) -> dict[Key, Recorded]:
    """The stored objects of these names, with their rows; one query for each table."""
    stored_by_key: dict[Key, Recorded] = {}
    for kind, stored_rows in stored_of(cluster, keys):
        if kind in OF_CLUSTER:
            for stored_object in stored_rows:
                stored_object.cluster = cluster
                stored_by_key[kind, "", stored_object.name] = stored_object
        else:
            row_sets = OF_NAMESPACE[kind].row_sets
            for policy in stored_rows.select_related("namespace").prefetch_related(*row_sets):
                policy.namespace.cluster = cluster
                stored_by_key[kind, policy.namespace.name, policy.name] = policy
    return stored_by_key


def _preview_one(
    cluster: Cluster,
    key: Key,
    manifest: Manifest,
    stored_object: Recorded | None,
    owners: Mapping[str, Namespace],
) -> Preview:
    before = stored_object.to_manifest() if stored_object else None
    kind, namespace, _ = key
    try:
        if stored_object:
            # A shallow copy is enough: reading a manifest replaces fields and drafts.
            instance: Any = copy.copy(stored_object)
        else:
            owner = owners.get(namespace)
            if kind not in OF_CLUSTER and owner is None:
                owner = require_namespace(cluster=cluster, name=namespace)
            instance = new_object(cluster, kind, owner)
        if isinstance(instance, PolicyObject):
            instance.forget_drafts()
            instance.replaces = stored_object if isinstance(stored_object, type(instance)) else None
        after = checked(instance, manifest)
    except ValidationError as error:
        return Preview(key=key, before=before, error=error)
    return Preview(key=key, stored=stored_object, instance=instance, before=before, after=after)


def lint_previews(cluster: Cluster, previews: Sequence[Preview]) -> list[Lint]:
    """Lint each namespace as it would be; as many queries as for one."""
    namespaces = sorted({each.key[1] for each in previews} - {""})
    stored = snapshot.load_many(cluster.name, namespaces)
    stored_classes = PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    class_names = {
        *stored_classes,
        *(name for kind, _, name in (each.key for each in previews) if kind == "PriorityClass"),
    }
    lints: list[Lint] = []
    for name in namespaces:
        afters = [each.after for each in previews if each.key[1] == name and each.after]
        lints += lint_namespace(_with_previewed(stored[name], afters), priority_classes=class_names)
    return lints


def _with_previewed(policies: PolicySet, manifests: Iterable[Manifest]) -> PolicySet:
    """The policies of a namespace, with these in place of those of the same names."""
    ranges_by_name = {each.name: each for each in policies.limit_ranges}
    rules = {each.name: each for each in policies.metadata_policies}
    quotas = {each.name: each for each in policies.resource_quotas}
    for manifest in manifests:
        name = str(manifest["metadata"]["name"])
        if manifest["kind"] == "LimitRange":
            ranges_by_name[name] = decode_limit_range(manifest)
        elif manifest["kind"] == "MetadataPolicy":
            rules[name] = decode_metadata_policy(manifest)
        elif manifest["kind"] == "ResourceQuota":
            previewed_quota = decode_resource_quota(manifest)
            used = quotas[name].used if name in quotas else previewed_quota.used
            quotas[name] = replace(previewed_quota, used=used)
    return replace(
        policies,
        limit_ranges=tuple(ranges_by_name[name] for name in sorted(ranges_by_name)),
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
            New(preview.key, preview.instance, manifest, preview.after or {})
            for preview, manifest in previews
            if preview.before is None
        ]
        # Namespaces first: a policy is stored with the key of its own.
        store_new(cluster, [new for new in news if not new.key[1]], author=author)
        policies = [new for new in news if new.key[1]]
        _link_namespaces(cluster, policies, user=user)
        store_new(cluster, policies, author=author)
        changed = [pair for pair in previews if pair[0].before and pair[0].before != pair[0].after]
        changes = [
            Change(preview.key, preview.stored, preview.instance, preview.before, preview.after)
            for preview, _ in changed
            if preview.key[1]
        ]
        change_many(cluster, changes, author=author)
        for preview, manifest in changed:
            if not preview.key[1]:
                apply_manifest(cluster=cluster, manifest=manifest, user=user, reason=reason)


def _link_namespaces(cluster: Cluster, news: Sequence[New], *, user: str) -> None:
    """Link each policy to its stored namespace, and create missing namespaces."""
    owners = owners_of(cluster, [new.key for new in news])
    for new in news:
        name = new.key[1]
        if name not in owners:
            owners[name] = ensure_namespace(cluster=cluster, name=name, user=user)
        new.instance.namespace = owners[name]
