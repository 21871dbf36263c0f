"""``put`` proposed writes into a change set, and ``take_out``; checked as a save checks them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from policies.change_sets.content import content_hash
from policies.change_sets.states import StepKind
from policies.models import ChangeItem, Cluster, PolicyRevision
from policies.models.changes.change_set import MOST_ITEMS
from policies.object_rules import with_enforcement
from policies.services.bulk_create import key_of
from policies.services.changes.refusals import (
    ItemProblem,
    ItemsRefusedError,
    no_such_item,
    problems_of,
)
from policies.services.changes.steps import lock, record_step
from policies.services.manifests import KINDS
from policies.services.preview import preview_many, stored_by_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from engine.policy import Enforcement
    from policies.models import ChangeSet
    from policies.services.field_managers import FieldWriter
    from policies.services.preview import Preview
    from policies.services.write import Key

_IDENTITY: Final = ("change", "cluster", "kind", "namespace", "name")
_CONTENT: Final = ("base_revision", "base", "content", "manager", "commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A proposed write: the manifest to store, or None to delete the object.

    ``based_on`` is the revision that its author saw, 0 for none; None stands for the stored one.
    ``writer`` becomes the field manager of what is published, by default whoever publishes it.
    """

    cluster: Cluster
    key: Key
    manifest: Mapping[str, Any] | None
    based_on: int | None = None
    writer: FieldWriter | None = None


def propose(
    cluster: Cluster, manifest: Mapping[str, Any], *, based_on: int | None = None
) -> Proposed:
    """Propose to create or update what a manifest describes."""
    return Proposed(cluster=cluster, key=key_of(manifest), manifest=manifest, based_on=based_on)


def propose_deletion(cluster: Cluster, key: Key, *, based_on: int | None = None) -> Proposed:
    """Propose to delete an object."""
    return Proposed(cluster=cluster, key=key, manifest=None, based_on=based_on)


def propose_mode(cluster: Cluster, keys: Collection[Key], mode: Enforcement) -> list[Proposed]:
    """Propose another enforcement of stored policies; names that are not stored are left out."""
    return [
        propose(cluster, with_enforcement(stored.to_manifest(), mode), based_on=stored.revision)
        for key, stored in stored_by_key(cluster, keys).items()
        if key[0] in KINDS
    ]


def put(change: ChangeSet, *, proposals: Sequence[Proposed], user: str) -> list[ChangeItem]:
    """Put writes into a change set, all or none; a later one of an object replaces the earlier.

    Those that change nothing are left out. What was reviewed or approved is a draft again. Raises
    ItemsRefusedError, and ``ValidationError`` for too many objects.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.EDIT)
        items = checked_items(locked, proposals)
        # One that is as its base again is no proposal any more.
        unchanged = {(item.cluster, item.key) for item in items if item.base == item.content}
        obsolete = [item for item in locked.items.all() if (item.cluster, item.key) in unchanged]
        if obsolete:
            drop_items(locked, obsolete, user=user)
        changed = [item for item in items if item.base != item.content]
        if changed:
            store_items(locked, changed, user=user)
    return changed


def store_items(
    locked: ChangeSet, items: Sequence[ChangeItem], *, user: str, verb: str = "put"
) -> None:
    """Store items in place of those of the same objects, and record the edit."""
    ChangeItem.objects.bulk_create(
        items, update_conflicts=True, unique_fields=_IDENTITY, update_fields=_CONTENT
    )
    if locked.items.count() > MOST_ITEMS:
        message = f"a change has at most {MOST_ITEMS} objects: make another one"
        raise ValidationError(message, code="too_many_objects")
    _record_edit(locked, items, user=user, verb=verb)


def drop_items(locked: ChangeSet, items: Sequence[ChangeItem], *, user: str) -> None:
    """Delete stored items of a locked change set, and record the edit."""
    locked.items.filter(pk__in=[item.pk for item in items]).delete()
    _record_edit(locked, items, user=user, verb="took out")


def _record_edit(locked: ChangeSet, items: Sequence[ChangeItem], *, user: str, verb: str) -> None:
    locked.content_hash = content_hash(item.to_content() for item in locked.items.all())
    what = str(items[0]) if len(items) == 1 else f"{len(items)} objects"
    record_step(locked, StepKind.EDIT, user=user, note=f"{verb} {what}")


def take_out(change: ChangeSet, *, items: Collection[int], user: str) -> ChangeSet:
    """Take objects out of a change set, by the keys of their rows; raises ``ValidationError``."""
    with transaction.atomic():
        locked = lock(change, step=StepKind.EDIT)
        taken = list(locked.items.filter(pk__in=items))
        if len(taken) != len(set(items)):
            raise no_such_item()
        if taken:
            drop_items(locked, taken, user=user)
    return locked


def checked_items(change: ChangeSet, proposals: Iterable[Proposed]) -> list[ChangeItem]:
    """The items of proposed writes, unsaved; raises ItemsRefusedError."""
    by_cluster: dict[int, dict[Key, Proposed]] = defaultdict(dict)
    for each in proposals:
        by_cluster[each.cluster.pk][each.key] = each
    items: list[ChangeItem] = []
    problems: list[ItemProblem] = []
    for proposed in by_cluster.values():
        for outcome in _outcomes(change, list(proposed.values())):
            if isinstance(outcome, ItemProblem):
                problems.append(outcome)
            else:
                items.append(outcome)
    if problems:
        raise ItemsRefusedError(problems)
    return items


def _outcomes(
    change: ChangeSet, proposed: Sequence[Proposed]
) -> Iterator[ChangeItem | ItemProblem]:
    """The item of each proposal of one cluster, or what is wrong with it."""
    cluster = proposed[0].cluster
    of_known = []
    for each in proposed:
        if each.key[0] in KINDS:
            of_known.append(each)
            continue
        message = f"must be one of: {', '.join(KINDS)}"
        yield ItemProblem(
            cluster=cluster.name, key=each.key, code="unknown_kind", message=message, path="kind"
        )
    previews = preview_many(
        cluster=cluster, manifests=[each.manifest for each in of_known if each.manifest is not None]
    )
    by_key = {preview.key: preview for preview in previews}
    deleted = [each.key for each in of_known if each.manifest is None]
    stored = stored_by_key(cluster, deleted) if deleted else {}
    for each in of_known:
        preview = by_key.get(each.key)
        if preview is not None and preview.error is not None:
            yield from problems_of(cluster.name, each.key, preview.error)
            continue
        yield _item_of(change, each, preview, preview.stored if preview else stored.get(each.key))


def _item_of(
    change: ChangeSet, proposed: Proposed, preview: Preview | None, stored: Any
) -> ChangeItem | ItemProblem:
    revision = stored.revision if stored is not None else 0
    base = stored.to_manifest() if stored is not None else None
    based_on = revision if proposed.based_on is None else proposed.based_on
    if based_on != revision:
        base = _manifest_at(proposed, based_on)
    kind, namespace, name = proposed.key
    manager, commit = proposed.writer or ("", "")
    unknown_base = base is None and bool(based_on)
    if unknown_base or (base is None and preview is None):
        code = "unknown_revision" if unknown_base else "not_found"
        message = f"has no revision {based_on}" if unknown_base else "there is no such object"
        return ItemProblem(
            cluster=proposed.cluster.name, key=proposed.key, code=code, message=message
        )
    return ChangeItem(
        change=change,
        cluster=proposed.cluster.name,
        kind=kind,
        namespace=namespace,
        name=name,
        base_revision=based_on,
        base=base,
        content=preview.after if preview is not None else None,
        manager=manager,
        commit=commit,
    )


def _manifest_at(proposed: Proposed, number: int) -> dict[str, Any] | None:
    """The object as one of its revisions left it; None where that one deleted it, or is none."""
    kind, namespace, name = proposed.key
    revisions = PolicyRevision.objects.of(
        cluster=proposed.cluster.name, kind=kind, namespace=namespace, name=name
    )
    revision = revisions.filter(number=number).first()
    return revision.after if revision is not None else None
