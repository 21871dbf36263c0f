"""``written``: all objects of a change set, in one write of each of its clusters."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from policies import snapshot
from policies.models import ChangeItem, Cluster
from policies.services.changes.parts import ClusterPart, namespaces_of, store_part
from policies.services.changes.refusals import ItemProblem, ItemsRefusedError, problems_of
from policies.services.field_managers import FieldWriter, managed_by
from policies.services.preview import preview_many, stored_by_key
from policies.services.write import last_numbers, lock_used, policy_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policies.models import ChangeSet

ItemsByCluster = dict[str, list[ChangeItem]]


@contextmanager
def written(
    locked: ChangeSet, *, user: str, reason: str, items: Iterable[ChangeItem] | None = None
) -> Iterator[None]:
    """Write some or all objects of a locked change set, in one write of each cluster.

    What is recorded inside belongs to the same writes. Raises ItemsRefusedError.
    """
    with ExitStack() as writes:
        by_cluster = items_by_cluster(locked.items.all() if items is None else items)
        clusters = writes.enter_context(open_writes(by_cluster))
        parts, problems = [], []
        for cluster in clusters:
            part, refused = _part_of(cluster, by_cluster[cluster.name])
            parts.append(part)
            problems += refused
        if problems:
            raise ItemsRefusedError(problems)
        # All locks before the first write, in one order, as decisions take them.
        for part in parts:
            lock_used(part.cluster, namespaces_of(part))
        for part in parts:
            for writer, of_writer in _by_writer(part, by_cluster[part.cluster.name]):
                with managed_by(writer) if writer else nullcontext():
                    store_part(of_writer, user=user, reason=reason)
            _note_written(part, by_cluster[part.cluster.name])
        yield


def items_by_cluster(items: Iterable[ChangeItem]) -> ItemsByCluster:
    """The objects of each cluster, by its name."""
    found: ItemsByCluster = defaultdict(list)
    for item in items:
        found[item.cluster].append(item)
    return found


@contextmanager
def open_writes(items: Mapping[str, Sequence[ChangeItem]]) -> Iterator[list[Cluster]]:
    """Open a write of each cluster, in the order in which all writers of several open theirs."""
    clusters = list(Cluster.objects.filter(name__in=items).order_by("pk"))
    known = {cluster.name for cluster in clusters}
    problems = [
        item_problem(item, "unknown_cluster", "there is no such cluster any more")
        for name, of_cluster in items.items()
        if name not in known
        for item in of_cluster
    ]
    if problems:
        raise ItemsRefusedError(problems)
    with ExitStack() as writes:
        for cluster in clusters:
            writes.enter_context(policy_write(cluster, is_guarded=False))
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
        # An earlier stage of a roll-out may have written it.
        expected = item.base_revision if item.written is None else item.written
        if found == expected:
            continue
        is_at = f"is at revision {found}" if found else "was deleted"
        based = f"revision {expected}" if expected else "no object"
        yield item_problem(item, "base_moved", f"{is_at}, the change is based on {based}: merge it")


def item_problem(item: ChangeItem, code: str, message: str) -> ItemProblem:
    """Why one of a change's objects cannot be written."""
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
