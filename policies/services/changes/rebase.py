"""``rebase`` an object of a change set whose base has moved: base, mine and theirs merged."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from policies.change_sets.merge import merge_objects
from policies.change_sets.states import StepKind
from policies.models import Cluster
from policies.services.changes.contents import Proposed, checked_items, drop_items, store_items
from policies.services.changes.refusals import no_such_item
from policies.services.changes.steps import lock
from policies.services.field_managers import FieldWriter
from policies.services.preview import stored_by_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policies.change_sets.merge import Side
    from policies.models import ChangeItem, ChangeSet


class MergeConflictError(Exception):
    """Both sides changed the same members; the empty path stands for the whole object."""

    def __init__(self, paths: Sequence[str]) -> None:
        named = ", ".join(path or "the whole object" for path in paths)
        super().__init__(f"both sides changed {named}: choose one")
        self.paths = tuple(paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """An object merged with what is stored now: its content, and the paths that conflict."""

    theirs: Mapping[str, Any] | None
    revision: int
    content: Mapping[str, Any] | None
    conflicts: tuple[str, ...]


def moved(items: Iterable[ChangeItem]) -> dict[int, Rebased]:
    """The objects whose base has moved, by key of their rows, merged; a few queries a cluster."""
    by_cluster: dict[str, list[ChangeItem]] = defaultdict(list)
    for item in items:
        by_cluster[item.cluster].append(item)
    found: dict[int, Rebased] = {}
    for cluster in Cluster.objects.filter(name__in=by_cluster):
        of_cluster = by_cluster[cluster.name]
        stored = stored_by_key(cluster, [item.key for item in of_cluster])
        for item in of_cluster:
            merged = _merged(item, stored.get(item.key))
            if merged.revision != item.base_revision:
                found[item.pk] = merged
    return found


def _merged(item: ChangeItem, stored: Any, *, keep: Side = "mine") -> Rebased:
    theirs = stored.to_manifest() if stored is not None else None
    content, conflicts = merge_objects(item.base, item.content, theirs, keep=keep)
    return Rebased(
        theirs=theirs,
        revision=stored.revision if stored is not None else 0,
        content=content,
        conflicts=tuple(conflicts),
    )


def rebase(
    change: ChangeSet, *, item: int, user: str, keep: Side | None = None
) -> ChangeItem | None:
    """Merge an object with what is stored now, which becomes its base; returns the item.

    None: nothing is left of the proposal, and the object is out of the change. ``keep`` says which
    side wins where both changed a member. Raises MergeConflictError without it, ``ValidationError``
    for an item that is not there, and ItemsRefusedError where the merge breaks a rule.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.EDIT)
        found: ChangeItem | None = locked.items.filter(pk=item).first()
        cluster = Cluster.objects.filter(name=found.cluster).first() if found else None
        if found is None or cluster is None:
            raise no_such_item()
        stored = stored_by_key(cluster, [found.key]).get(found.key)
        merged = _merged(found, stored, keep=keep or "mine")
        if merged.conflicts and keep is None:
            raise MergeConflictError(merged.conflicts)
        if merged.content == merged.theirs:
            drop_items(locked, [found], user=user)
            return None
        proposal = Proposed(
            cluster=cluster,
            key=found.key,
            manifest=merged.content,
            based_on=merged.revision,
            writer=FieldWriter(found.manager, found.commit) if found.manager else None,
        )
        items = checked_items(locked, [proposal])
        store_items(locked, items, user=user, verb="merged")
    return items[0]
