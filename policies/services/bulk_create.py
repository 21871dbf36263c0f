"""Create many objects at once in few statements, as in a first import."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError

from engine.resource_quota import decode_resource_quota
from policies import ledger
from policies.models import LimitRange, Namespace, PolicyObject, PriorityClass, ResourceQuota
from policies.services.manifests import DEFAULT_NAMESPACE, KINDS, take_over
from policies.services.observed import names_to_count
from policies.services.write import (
    Saved,
    last_numbers,
    lock_used,
    policy_write,
    put_all_on_record,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from django.db import models

    from engine.resource_list import ResourceList
    from policies.models import Cluster, PolicyRevision, Recorded
    from policies.services.write import Key

    Manifest = Mapping[str, Any]

_OF_CLUSTER: Final[Mapping[str, type[Namespace | PriorityClass]]] = {
    "Namespace": Namespace,
    "PriorityClass": PriorityClass,
}


@dataclass(frozen=True, slots=True)
class New:
    """One checked object that is to be stored: what it was read from, and what goes on record."""

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
    """Store what is new here and in order; gives what was saved for each manifest, or None.

    None says that nothing was done: there is such an object, it comes twice, its namespace is not
    there, or something is wrong with it. ``apply_manifest``, one by one, does it or says why.
    Checks, revisions and opening balances are those of ``apply_manifest``, and the number of
    statements does not depend on how many they are. Ranges and quotas are marked as the cluster's
    own with ``is_native``. No lints. Where the database itself refuses one (``IntegrityError``,
    ``DataError``), nothing is stored.
    """
    with policy_write(cluster):
        news = _read(cluster, manifests)
        for new in news.values():
            if isinstance(new.instance, LimitRange | ResourceQuota):
                new.instance.is_native = is_native
        revisions = store_new(cluster, list(news.values()), author=(user, reason))
    saved = {
        place: Saved(instance=new.instance, revision=revision)
        for (place, new), revision in zip(news.items(), revisions, strict=True)
    }
    return [saved.get(place) for place in range(len(manifests))]


def store_new(
    cluster: Cluster, news: Sequence[New], *, author: tuple[str, str]
) -> list[PolicyRevision]:
    """Store checked objects of free names, inside ``policy_write``; gives their revisions."""
    if not news:
        return []
    lock_used(cluster, {namespace for _, namespace, _ in (new.key for new in news)})
    numbers = last_numbers(cluster, [new.key for new in news])
    for new in news:
        new.instance.revision = numbers.get(new.key, 0) + 1
    _store(cluster, news)
    return put_all_on_record([new.instance for new in news], [new.after for new in news], author)


def _read(cluster: Cluster, manifests: Sequence[Manifest]) -> dict[int, New]:
    """Read and check what is to be stored, by its place among the manifests."""
    keys = [key_of(manifest) for manifest in manifests]
    owners = owners_of(cluster, keys)
    taken = _taken(cluster, keys)
    news: dict[int, New] = {}
    for place, (key, manifest) in enumerate(zip(keys, manifests, strict=True)):
        if key in taken or not (instance := _instance(cluster, key, owners)):
            continue
        taken.add(key)
        try:
            after = _checked(instance, manifest)
        except ValidationError:
            continue
        news[place] = New(key, instance, manifest, after)
    return news


def key_of(manifest: Manifest) -> Key:
    """Kind, namespace and name of what a manifest describes."""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind, name = str(manifest.get("kind")), str(metadata.get("name") or "")
    namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE) if kind in KINDS else ""
    return kind, namespace, name


def owners_of(cluster: Cluster, keys: Iterable[Key]) -> dict[str, Namespace]:
    """Find the namespaces of policies by name; one query."""
    names = {namespace for _, namespace, _ in keys} - {""}
    if not names:
        return {}
    found = {one.name: one for one in Namespace.objects.filter(cluster=cluster, name__in=names)}
    for namespace in found.values():
        namespace.cluster = cluster
    return found


def _taken(cluster: Cluster, keys: Collection[Key]) -> set[Key]:
    """Find which of the names have an object; one query for each kind."""
    found: set[Key] = set()
    for kind in {kind for kind, _, _ in keys}:
        names = {name for other, _, name in keys if other == kind}
        if of_cluster := _OF_CLUSTER.get(kind):
            rows = of_cluster.objects.filter(cluster=cluster, name__in=names)
            found |= {(kind, "", name) for name in rows.values_list("name", flat=True)}
        elif model := KINDS.get(kind):
            namespaces = {namespace for other, namespace, _ in keys if other == kind}
            rows = model.objects.filter(
                namespace__cluster=cluster, namespace__name__in=namespaces, name__in=names
            )
            places = rows.order_by().values_list("namespace__name", "name")
            found |= {(kind, namespace, name) for namespace, name in places}
    return found


def _instance(
    cluster: Cluster, key: Key, owners: Mapping[str, Namespace]
) -> Namespace | PriorityClass | PolicyObject | None:
    """Make the empty object of a key, or None for a kind or namespace that is not known."""
    kind, namespace, _ = key
    if of_cluster := _OF_CLUSTER.get(kind):
        return of_cluster(cluster=cluster)
    if kind in KINDS and namespace in owners:
        return KINDS[kind](namespace=owners[namespace])
    return None


def _checked(instance: Recorded, manifest: Manifest) -> dict[str, Any]:
    """Have it read its manifest, and check it; gives what goes on record.

    What only the database knows (that names are free, that the owner exists) was asked for all.
    """
    take_over(instance, manifest)
    owner = "namespace" if isinstance(instance, PolicyObject) else "cluster"
    instance.full_clean(exclude={owner}, validate_unique=False, validate_constraints=False)
    return instance.to_manifest()


def _store(cluster: Cluster, news: Sequence[New]) -> None:
    _note_uncounted(cluster, [new for new in news if new.key[0] == "ResourceQuota"])
    for model, instances in _by_model(new.instance for new in news).items():
        model.objects.bulk_create(instances)
    policies = [new.instance for new in news if isinstance(new.instance, PolicyObject)]
    rows = (row for policy in policies for row in _rows(policy))
    for row_model, of_model in _by_model(rows).items():
        row_model._default_manager.bulk_create(of_model)  # noqa: SLF001 - Django's own API
    quotas = [(new.instance, _opening(new.given)) for new in news if new.key[0] == "ResourceQuota"]
    ledger.open_accounts(cluster, quotas)
    for policy in policies:
        policy.forget_drafts()


def _note_uncounted(cluster: Cluster, quotas: Sequence[New]) -> None:
    """Leave unknown what was not said to be used; as many statements for many as for one."""
    bound = {row.resource for new in quotas for row in new.instance.rows_of("rows")}
    waiting = set(names_to_count(cluster, bound))
    for new in quotas:
        names = {row.resource for row in new.instance.rows_of("rows")}
        new.instance.uncounted = sorted((names & waiting) - _opening(new.given).keys())


def _by_model(objects: Iterable[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for one in objects:
        found[type(one)].append(one)
    return found


def _rows(policy: PolicyObject) -> Iterable[models.Model]:
    """Give the drafted rows, tied to their policy."""
    for row_set, rows in policy.drafts.items():
        owner = getattr(policy, row_set).field.name
        for row in rows:
            setattr(row, owner, policy)
            yield row


def _opening(manifest: Manifest) -> ResourceList:
    """Read what a quota used before it was known here, if its cluster says so."""
    status = manifest.get("status")
    has_used = isinstance(status, dict) and status.get("used")
    return decode_resource_quota(manifest).used if has_used else {}
