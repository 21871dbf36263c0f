"""Preview the changes of many manifests without a write or a lock, and store what was previewed."""

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
from policies.services.bulk_create import New, key_of, owners_of, store_new
from policies.services.manifests import (
    KINDS,
    apply_manifest,
    ensure_namespace,
    require_namespace,
    take_over,
)
from policies.services.write import in_bulk, last_numbers, policy_write, put_all_on_record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from django.db import models

    from engine.policy import PolicySet
    from policies.models import Cluster, Recorded
    from policies.services.write import Key

    Manifest = Mapping[str, Any]


_OF_CLUSTER: Mapping[str, type[Namespace | PriorityClass]] = {
    "Namespace": Namespace,
    "PriorityClass": PriorityClass,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One object: what is stored of it and what would be, or why it cannot be written.

    ``stored`` and ``instance`` are the same two as models; the latter's rows wait as drafts.
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
    """Say what ``apply_manifest`` would do with each; a few questions, however many they are.

    A namespace that one of the manifests makes is as good as one that is there, as is any with
    ``create_namespaces``.
    """
    keys = [key_of(manifest) for manifest in manifests]
    owners = owners_of(cluster, keys)
    wanted = {name for kind, _, name in keys if kind == "Namespace"}
    if create_namespaces:
        wanted |= {namespace for _, namespace, _ in keys if namespace}
    for name in wanted - owners.keys():
        owners[name] = Namespace(cluster=cluster, name=name)
    stored = _stored(cluster, keys)
    return [
        _preview(cluster, key, manifest, stored.get(key), owners)
        for key, manifest in zip(keys, manifests, strict=True)
    ]


def _stored(cluster: Cluster, keys: Collection[Key]) -> dict[Key, Recorded]:
    """The stored objects of these names, with their rows; one question for each table."""
    found: dict[Key, Recorded] = {}
    for kind in {kind for kind, _, _ in keys}:
        names = {name for other, _, name in keys if other == kind}
        if of_cluster := _OF_CLUSTER.get(kind):
            for row in of_cluster.objects.filter(cluster=cluster, name__in=names):
                row.cluster = cluster
                found[kind, "", row.name] = row
        elif model := KINDS.get(kind):
            namespaces = {namespace for other, namespace, _ in keys if other == kind}
            rows = model.objects.filter(
                namespace__cluster=cluster, namespace__name__in=namespaces, name__in=names
            )
            rows = rows.select_related("namespace").prefetch_related(*model.row_sets)
            for policy in rows:
                policy.namespace.cluster = cluster
                found[kind, policy.namespace.name, policy.name] = policy
    return found


def _preview(
    cluster: Cluster,
    key: Key,
    manifest: Manifest,
    stored: Recorded | None,
    owners: Mapping[str, Namespace],
) -> Preview:
    before = stored.to_manifest() if stored else None
    try:
        instance = _copy(stored) if stored else _new(cluster, key, owners)
        take_over(instance, manifest)
        if isinstance(instance, PolicyObject):
            instance.replaces = stored if isinstance(stored, type(instance)) else None
        owner = "namespace" if isinstance(instance, PolicyObject) else "cluster"
        instance.full_clean(exclude={owner}, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        return Preview(key=key, before=before, error=error)
    after = instance.to_manifest()
    return Preview(key=key, stored=stored, instance=instance, before=before, after=after)


def _copy(stored: Recorded) -> Recorded:
    """The same row once more: reading a manifest sets fields and drafts, and changes none."""
    instance = copy.copy(stored)
    if isinstance(instance, PolicyObject):
        instance.forget_drafts()
    return instance


def _new(cluster: Cluster, key: Key, owners: Mapping[str, Namespace]) -> Recorded:
    kind, namespace, _ = key
    if of_cluster := _OF_CLUSTER.get(kind):
        return of_cluster(cluster=cluster)
    if namespace not in owners:
        require_namespace(cluster=cluster, name=namespace)
    return KINDS[kind](namespace=owners[namespace])


def lint_previews(cluster: Cluster, previews: Sequence[Preview]) -> list[Lint]:
    """Look at each namespace as it would be; as many questions as for one."""
    names = sorted({each.key[1] for each in previews} - {""})
    stored = snapshot.load_many(cluster.name, names)
    known = PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    classes = {
        *known,
        *(name for kind, _, name in (each.key for each in previews) if kind == "PriorityClass"),
    }
    found: list[Lint] = []
    for name in names:
        afters = [each.after for each in previews if each.key[1] == name and each.after]
        found += lint_namespace(_with(stored[name], afters), priority_classes=classes)
    return found


def _with(policies: PolicySet, manifests: Iterable[Manifest]) -> PolicySet:
    """The policies of a namespace with these in place of those of the same names."""
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
    """Store each previewed object with its manifest; what does not change is left alone.

    Namespaces that are not there are made. Revisions and opening balances are those of
    ``apply_manifest``, the checks were those of ``preview_many``. Nothing may have been written
    since (compare ``snapshot.revision`` inside ``policy_write``). Raises ``ValidationError``; no
    lints.
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
        _link(cluster, policies, user=user)
        store_new(cluster, policies, author=author)
        changed = [one for one in previews if one[0].before and one[0].before != one[0].after]
        _change([each for each, _ in changed if _is_plain(each)], author=author)
        for each, manifest in changed:
            if not _is_plain(each):
                apply_manifest(cluster=cluster, manifest=manifest, user=user, reason=reason)


def _link(cluster: Cluster, news: Sequence[New], *, user: str) -> None:
    """Give each policy the namespace as it is stored by now."""
    owners = owners_of(cluster, [new.key for new in news])
    for new in news:
        name = new.key[1]
        if name not in owners:
            owners[name] = ensure_namespace(cluster=cluster, name=name, user=user)
        new.instance.namespace = owners[name]


def _is_plain(preview: Preview) -> bool:
    """Whether nothing hangs on it but its rows: no ledger, nothing of a whole cluster."""
    return isinstance(preview.instance, LimitRange | MetadataPolicy)


def _change(previews: Sequence[Preview], *, author: tuple[str, str]) -> None:
    if not previews:
        return
    policies: list[Any] = [each.instance for each in previews]
    numbers = last_numbers(policies[0].owner, [each.key for each in previews])
    for each, policy in zip(previews, policies, strict=True):
        policy.revision = numbers.get(each.key, 0) + 1
    for model in (LimitRange, MetadataPolicy):
        _write([policy for policy in policies if isinstance(policy, model)])
    afters, befores = (
        [each.after or {} for each in previews],
        [each.before or {} for each in previews],
    )
    put_all_on_record(policies, afters, author, befores=befores)


def _write(policies: Sequence[PolicyObject]) -> None:
    """Save objects of one model with the drafted rows in place of their own."""
    for policy in policies:
        policy.save()
    for row_set in policies[0].row_sets if policies else ():
        field = getattr(policies[0], row_set).field
        rows: list[models.Model] = []
        for policy in policies:
            for row in policy.drafts.get(row_set, ()):
                setattr(row, field.name, policy)
                rows.append(row)
        manager = field.model._default_manager  # noqa: SLF001 - Django's own API
        manager.filter(**{f"{field.name}__in": policies}).delete()
        manager.bulk_create(rows)
    for policy in policies:
        policy.forget_drafts()
