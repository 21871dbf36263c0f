"""``create_many`` New objects by bulk_create: keys, owners, taken keys, drafted rows, accounts."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError

from policies.ledger.recount import open_accounts
from policies.models import KeptTest, LimitRange, Namespace, PolicyObject, ResourceQuota
from policies.services.manifests import (
    DEFAULT_NAMESPACE,
    KINDS,
    OF_CLUSTER,
    OF_NAMESPACE,
    new_object,
    opening_balance,
    take_over,
)
from policies.services.observed import names_to_count
from policies.services.write import Saved, last_numbers, lock_used, policy_write, record_objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from django.db import models
    from django.db.models import QuerySet

    from policies.models import Cluster, PolicyRevision, Recorded
    from policies.services.write import Key

    Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class New:
    """A checked object to store, the manifest it was read from, and the one to record."""

    key: Key
    instance: Any
    given: Manifest
    after: dict[str, Any]


def create_many(
    *,
    cluster: Cluster,
    manifests: Sequence[Manifest],
    user: str,
    reason: str = "",
    is_native: bool = False,
) -> list[Saved | None]:
    """Create the objects of new and valid manifests; returns what was saved for each, or None.

    None: the object exists, its manifest comes twice, its namespace does not exist, or the manifest
    is invalid. Call ``apply_manifest`` for each of those: it updates the object or raises.
    Checks, revisions and opening balances are the same as there; the number of statements does not
    grow with the number of manifests. ``is_native`` marks ranges and quotas as the cluster's own.
    No lints. If the database refuses one (``IntegrityError``, ``DataError``), nothing is stored.
    """
    with policy_write(cluster):
        news = _read_new(cluster, manifests)
        for new in news.values():
            if isinstance(new.instance, LimitRange | ResourceQuota):
                new.instance.is_native = is_native
        revisions = store_new(cluster, list(news.values()), author=(user, reason))
    saved_at = {
        index: Saved(instance=new.instance, revision=revision)
        for (index, new), revision in zip(news.items(), revisions, strict=True)
    }
    return [saved_at.get(index) for index in range(len(manifests))]


def store_new(
    cluster: Cluster, news: Sequence[New], *, author: tuple[str, str]
) -> list[PolicyRevision]:
    """Create checked objects of unused names, inside ``policy_write``; returns their revisions."""
    if not news:
        return []
    lock_used(cluster, {namespace for _, namespace, _ in (new.key for new in news)})
    last_number_of = last_numbers(cluster, [new.key for new in news])
    for new in news:
        # The numbers of a deleted predecessor go on.
        new.instance.revision = last_number_of.get(new.key, 0) + 1
        if isinstance(new.instance, KeptTest):
            new.instance.author = author[0]
    new_quotas = [new for new in news if new.key[0] == "ResourceQuota"]
    _note_uncounted(cluster, new_quotas)
    for model, instances in _grouped_by_model(new.instance for new in news).items():
        model.objects.bulk_create(instances)
    new_policies = [new.instance for new in news if isinstance(new.instance, PolicyObject)]
    new_rows = (row for policy in new_policies for row in drafted_rows(policy))
    for row_model, of_model in _grouped_by_model(new_rows).items():
        row_model._default_manager.bulk_create(of_model)  # noqa: SLF001 - Django's own API
    open_accounts(cluster, [(new.instance, opening_balance(new.given)) for new in new_quotas])
    for policy in new_policies:
        policy.forget_drafts()
    return record_objects([new.instance for new in news], [new.after for new in news], author)


def _read_new(cluster: Cluster, manifests: Sequence[Manifest]) -> dict[int, New]:
    """Read and check the new objects, by their place among the manifests."""
    keys = [key_of(manifest) for manifest in manifests]
    owners = owners_of(cluster, keys)
    taken = _taken_keys(cluster, keys)
    news: dict[int, New] = {}
    for index, (key, manifest) in enumerate(zip(keys, manifests, strict=True)):
        kind, namespace, _ = key
        if key in taken or not (kind in OF_CLUSTER or (kind in KINDS and namespace in owners)):
            continue
        taken.add(key)
        instance = new_object(cluster, kind, owners.get(namespace))
        with suppress(ValidationError):
            news[index] = New(key, instance, manifest, checked(instance, manifest))
    return news


def key_of(manifest: Manifest) -> Key:
    """Kind, namespace and name of a manifest's object."""
    key_metadata = manifest.get("metadata")
    key_metadata = key_metadata if isinstance(key_metadata, dict) else {}
    kind, name = str(manifest.get("kind")), str(key_metadata.get("name") or "")
    namespace = (
        str(key_metadata.get("namespace") or DEFAULT_NAMESPACE) if kind in OF_NAMESPACE else ""
    )
    return kind, namespace, name


def owners_of(cluster: Cluster, keys: Iterable[Key]) -> dict[str, Namespace]:
    """Find the namespaces of policies by name; one query."""
    names = {namespace for _, namespace, _ in keys} - {""}
    if not names:
        return {}
    owners = {one.name: one for one in Namespace.objects.filter(cluster=cluster, name__in=names)}
    for namespace in owners.values():
        namespace.cluster = cluster  # it would be fetched for each
    return owners


def stored_of(cluster: Cluster, keys: Collection[Key]) -> Iterator[tuple[str, QuerySet[Any]]]:
    """The stored objects of these names by kind; one query for each kind."""
    for kind in {kind for kind, _, _ in keys}:
        names = {name for other_kind, _, name in keys if other_kind == kind}
        if of_cluster := OF_CLUSTER.get(kind):
            yield kind, of_cluster.objects.filter(cluster=cluster, name__in=names)
        elif model := OF_NAMESPACE.get(kind):
            namespaces = {namespace for other_kind, namespace, _ in keys if other_kind == kind}
            stored_policies = model.objects.filter(
                namespace__cluster=cluster, namespace__name__in=namespaces, name__in=names
            )
            yield kind, stored_policies


def _taken_keys(cluster: Cluster, keys: Collection[Key]) -> set[Key]:
    """Find which of the names have an object."""
    taken_keys: set[Key] = set()
    for kind, stored_rows in stored_of(cluster, keys):
        if kind in OF_CLUSTER:
            taken_keys |= {(kind, "", name) for name in stored_rows.values_list("name", flat=True)}
        else:
            taken_places = stored_rows.order_by().values_list("namespace__name", "name")
            taken_keys |= {(kind, namespace, name) for namespace, name in taken_places}
    return taken_keys


def checked(instance: Recorded, manifest: Manifest) -> dict[str, Any]:
    """Set an object's content and check it; returns the manifest to record.

    Names and owners are not queried again: the callers have looked up those of all objects at once.
    """
    take_over(instance, manifest)
    owner = "namespace" if isinstance(instance, PolicyObject | KeptTest) else "cluster"
    instance.full_clean(exclude={owner}, validate_unique=False, validate_constraints=False)
    return instance.to_manifest()


def _note_uncounted(cluster: Cluster, quotas: Sequence[New]) -> None:
    """Mark the names whose used amount nobody reported; as many statements as for one quota."""
    bounded_names = {row.resource for new in quotas for row in new.instance.rows_of("rows")}
    waiting_names = set(names_to_count(cluster, bounded_names))
    for new in quotas:
        names = {row.resource for row in new.instance.rows_of("rows")}
        new.instance.uncounted = sorted((names & waiting_names) - opening_balance(new.given).keys())


def _grouped_by_model(objects: Iterable[Any]) -> dict[Any, list[Any]]:
    by_model: dict[Any, list[Any]] = defaultdict(list)
    for one in objects:
        by_model[type(one)].append(one)
    return by_model


def drafted_rows(policy: PolicyObject) -> Iterable[models.Model]:
    """The drafted rows of a stored policy, each linked to it."""
    for row_set, rows_of_set in policy.drafts.items():
        owner = getattr(policy, row_set).field.name
        for row in rows_of_set:
            setattr(row, owner, policy)
            yield row
