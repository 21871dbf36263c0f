"""``publish`` a change set, and ``revert`` it: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction

from policies import snapshot
from policies.change_sets.states import StepKind
from policies.models import ChangeItem, Cluster, PolicyRevision
from policies.services.changes.parts import ClusterPart, namespaces_of, store_part
from policies.services.changes.refusals import ItemProblem, ItemsRefusedError, problems_of
from policies.services.changes.steps import lock, record_step
from policies.services.changes.take_back import take_back
from policies.services.field_managers import FieldWriter, managed_by
from policies.services.preview import preview_many, stored_by_key
from policies.services.write import last_numbers, lock_used, policy_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policies.models import ChangeSet

ItemsByCluster = dict[str, list[ChangeItem]]


def publish(change: ChangeSet, *, user: str, seen: str = "", note: str = "") -> ChangeSet:
    """Write all objects of an approved change set; its number is in the reason of each revision.

    It is one write of each cluster, with one number. Raises ItemsRefusedError with every object
    whose base has moved or that its rules refuse, OutdatedChangeError and StepRefusedError.
    """
    with transaction.atomic(), ExitStack() as writes:
        locked = lock(change, step=StepKind.PUBLISH, seen=seen)
        items = _by_cluster(locked.items.all())
        clusters = writes.enter_context(_open_writes(items))
        parts, problems = [], []
        for cluster in clusters:
            part, refused = _part_of(cluster, items[cluster.name])
            parts.append(part)
            problems += refused
        if problems:
            raise ItemsRefusedError(problems)
        # All locks before the first write, in one order, as decisions take them.
        for part in parts:
            lock_used(part.cluster, namespaces_of(part))
        for part in parts:
            for writer, of_writer in _by_writer(part, items[part.cluster.name]):
                with managed_by(writer) if writer else nullcontext():
                    store_part(of_writer, user=user, reason=f"{locked}: {locked.title}")
            _note_written(part, items[part.cluster.name])
        record_step(locked, StepKind.PUBLISH, user=user, note=note)
    return locked


def revert(change: ChangeSet, *, user: str, note: str = "") -> ChangeSet:
    """Restore every object that a published change set wrote, in one write of each cluster.

    Raises ItemsRefusedError with every object that was written since, and StepRefusedError.
    """
    with transaction.atomic(), ExitStack() as writes:
        locked = lock(change, step=StepKind.REVERT)
        items = _by_cluster(locked.items.filter(written__isnull=False))
        clusters = writes.enter_context(_open_writes(items))
        problems = [
            problem
            for cluster in clusters
            for problem in _written_since(cluster, items[cluster.name])
        ]
        if problems:
            raise ItemsRefusedError(problems)
        for cluster in clusters:
            revisions = _revisions_of(cluster, items[cluster.name])
            take_back(cluster, revisions, user=user, reason=f"reverts {locked}: {locked.title}")
        record_step(locked, StepKind.REVERT, user=user, note=note)
    return locked


def _by_cluster(items: Iterable[ChangeItem]) -> ItemsByCluster:
    by_cluster: ItemsByCluster = defaultdict(list)
    for item in items:
        by_cluster[item.cluster].append(item)
    return by_cluster


@contextmanager
def _open_writes(items: Mapping[str, Sequence[ChangeItem]]) -> Iterator[list[Cluster]]:
    """Open a write of each cluster, in the order in which all writers of several open theirs."""
    clusters = list(Cluster.objects.filter(name__in=items).order_by("pk"))
    known = {cluster.name for cluster in clusters}
    problems = [
        _problem(item, "unknown_cluster", "there is no such cluster any more")
        for name, of_cluster in items.items()
        if name not in known
        for item in of_cluster
    ]
    if problems:
        raise ItemsRefusedError(problems)
    with ExitStack() as writes:
        for cluster in clusters:
            writes.enter_context(policy_write(cluster))
        yield clusters


def _part_of(
    cluster: Cluster, items: Sequence[ChangeItem]
) -> tuple[ClusterPart, list[ItemProblem]]:
    """What is to be written to a cluster, read inside its write, and what is against it."""
    stored = stored_by_key(cluster, [item.key for item in items])
    problems = list(_moved(items, stored))
    wanted = {item.key: item.content for item in items if item.content is not None}
    previews = preview_many(cluster=cluster, manifests=list(wanted.values()))
    for preview in previews:
        if preview.error is not None:
            problems += problems_of(cluster.name, preview.key, preview.error)
    part = ClusterPart(
        cluster=cluster,
        number=snapshot.revision(cluster.name),
        previews=tuple(
            (preview, wanted[preview.key] or {})
            for preview in previews
            if preview.before != preview.after
        ),
        deletions=tuple(
            stored[item.key] for item in items if item.content is None and item.key in stored
        ),
    )
    return part, problems


def _moved(items: Sequence[ChangeItem], stored: Mapping[Any, Any]) -> Iterator[ItemProblem]:
    for item in items:
        found = stored[item.key].revision if item.key in stored else 0
        if found == item.base_revision:
            continue
        is_at = f"is at revision {found}" if found else "was deleted"
        based = f"revision {item.base_revision}" if item.base_revision else "no object"
        yield _problem(item, "base_moved", f"{is_at}, the change is based on {based}: merge it")


def _problem(item: ChangeItem, code: str, message: str) -> ItemProblem:
    return ItemProblem(cluster=item.cluster, key=item.key, code=code, message=message)


def _by_writer(
    part: ClusterPart, items: Sequence[ChangeItem]
) -> list[tuple[FieldWriter | None, ClusterPart]]:
    """A part by the field managers of its objects; None for whoever publishes it."""
    writers = {
        item.key: FieldWriter(item.manager, item.commit) if item.manager else None for item in items
    }
    previews: dict[FieldWriter | None, list[Any]] = defaultdict(list)
    deletions: dict[FieldWriter | None, list[Any]] = defaultdict(list)
    for each in part.previews:
        previews[writers[each[0].key]].append(each)
    for stored in part.deletions:
        deletions[writers[stored.kind, stored.namespace_name, stored.name]].append(stored)
    return [
        (
            writer,
            replace(part, previews=tuple(previews[writer]), deletions=tuple(deletions[writer])),
        )
        for writer in dict.fromkeys(writers.values())
        if writer in previews or writer in deletions
    ]


def _note_written(part: ClusterPart, items: Sequence[ChangeItem]) -> None:
    """Keep the revision that was written of each object, for a revert."""
    written = {preview.key for preview, _ in part.previews} | {
        (each.kind, each.namespace_name, each.name) for each in part.deletions
    }
    if not written:
        return
    numbers = last_numbers(part.cluster, written)
    changed = [item for item in items if item.key in written]
    for item in changed:
        item.written = numbers[item.key]
    ChangeItem.objects.bulk_update(changed, ["written"])


def _written_since(cluster: Cluster, items: Sequence[ChangeItem]) -> Iterator[ItemProblem]:
    numbers = last_numbers(cluster, [item.key for item in items])
    for item in items:
        found = numbers.get(item.key, 0)
        if found != item.written:
            message = f"was written since: the change wrote revision {item.written}, not {found}"
            yield _problem(item, "written_since", message)


def _revisions_of(cluster: Cluster, items: Sequence[ChangeItem]) -> list[PolicyRevision]:
    written = {(*item.key, item.written) for item in items}
    revisions = PolicyRevision.objects.filter(
        cluster=cluster.name,
        kind__in={item.kind for item in items},
        namespace__in={item.namespace for item in items},
        name__in={item.name for item in items},
        number__in={item.written for item in items},
    )
    # The sets may match further revisions.
    return [
        each for each in revisions if (each.kind, each.namespace, each.name, each.number) in written
    ]
