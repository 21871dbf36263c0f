"""``rebase`` an object of a change set whose base has moved: base, mine and theirs merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from policies.change_sets.merge import merge_objects
from policies.change_sets.states import StepKind
from policies.models import Cluster
from policies.services.changes.contents import Proposed, checked_items, drop_items, store_items
from policies.services.changes.refusals import no_such_item
from policies.services.changes.steps import lock
from policies.services.preview import stored_by_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def merge_with_stored(item: ChangeItem, *, keep: Side = "mine") -> Rebased:
    """Merge an object of a change set with the stored one; it reads alone."""
    stored = _stored_of(item)
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
        merged = merge_with_stored(found, keep=keep or "mine")
        if merged.conflicts and keep is None:
            raise MergeConflictError(merged.conflicts)
        if merged.content == merged.theirs:
            drop_items(locked, [found], user=user)
            return None
        proposal = Proposed(
            cluster=cluster, key=found.key, manifest=merged.content, based_on=merged.revision
        )
        items = checked_items(locked, [proposal])
        store_items(locked, items, user=user, verb="merged")
    return items[0]


def _stored_of(item: ChangeItem) -> Any:
    cluster = Cluster.objects.filter(name=item.cluster).first()
    return stored_by_key(cluster, [item.key]).get(item.key) if cluster is not None else None
