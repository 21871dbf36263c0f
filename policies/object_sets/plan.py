"""``plan`` of an apply: create, change, delete or leave each object; conflicts and blocks.

An apply is like Kubernetes' server-side apply of many objects, by one manager: the set.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from policies import services, snapshot
from policies.managed_fields import (
    GIT,
    OBJECT,
    FieldManager,
    ManagedField,
    Merge,
    managers_from_json,
    merge,
    others,
)
from policies.manifests import diff_in_words
from policies.manifests.documents import ManifestError
from policies.manifests.refusals import refusal_problems
from policies.manifests.render import admission_configuration, render_documents, render_manifests
from policies.models import NamespaceClass
from policies.object_sets.deletions import Deletion, find_deletions
from policies.services.brake import brake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.manifests.bundle import Bundle, Wanted
    from policies.models import Cluster, ObjectManagers
    from policies.services.field_managers import Key

Action = Literal["create", "change", "delete", "unchanged", "conflict"]
_HINTS: Final = {"unknown_namespace": "createNamespaces makes it"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """The set of an apply, and what the apply may do.

    ``confirmed``: so many deletions were confirmed by a person.
    """

    name: str
    commit: str = ""
    prune: bool = False
    force: bool = False
    create_namespaces: bool = False
    confirmed: int = 0

    @property
    def manager(self) -> str:
        """The set's field manager."""
        return f"{GIT}{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedObject:
    """One object before and after the apply, the changes in words, and other managers' fields.

    ``revision`` is the stored one, 0 for none.
    """

    key: Key
    action: Action
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    changes: tuple[str, ...] = ()
    conflicts: tuple[ManagedField, ...] = ()
    kept: tuple[ManagedField, ...] = ()
    revision: int = 0

    @property
    def diff(self) -> str:
        """The change as a unified diff of two YAML texts; empty without one."""
        before, after = (_text_of(one) for one in (self.before, self.after))
        if before == after:
            return ""
        title = "/".join(part for part in self.key if part)
        names = (
            f"stored/{title}" if before else "/dev/null",
            f"new/{title}" if after else "/dev/null",
        )
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), *names
        )
        return "".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A reason for which a plan is not carried out: its code, and text with the remedy."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlan:
    """An apply before it is carried out.

    ``left`` are objects of the set that the documents lack and that stay without ``prune``.
    ``number`` is the cluster's policy revision that was read; ``previews`` are what is stored, each
    with the manifest to store. ``classes`` are the namespace classes, which are for all clusters;
    a set never prunes them.
    """

    options: SetOptions
    objects: tuple[PlannedObject, ...]
    left: tuple[Key, ...] = ()
    blocks: tuple[Block, ...] = ()
    hints: tuple[str, ...] = ()
    number: int = 0
    previews: tuple[tuple[services.Preview, Mapping[str, Any]], ...] = ()
    wanted: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict)
    classes: tuple[Mapping[str, Any], ...] = ()

    def having(self, action: Action) -> list[PlannedObject]:
        """The objects with this action."""
        return [each for each in self.objects if each.action == action]


def plan(cluster: Cluster, bundle: Bundle, options: SetOptions) -> SetPlan:
    """Plan an apply; reads alone, in a number of queries that does not grow with the documents.

    Raises ManifestError with the problems of all objects that cannot be stored.
    """
    # Read first: what is written while we plan makes the plan outdated.
    number = snapshot.revision(cluster.name)
    rows = services.managers_of(
        cluster, [services.CONFIGURATION, *(each.key for each in bundle.objects)]
    )
    first = _preview(cluster, [(each, each.manifest) for each in bundle.objects], options)
    merges = [
        _merge_of(preview, rows.get(preview.key), options, wanted=preview.after or {})
        for preview in first
    ]
    previews = _preview_merged(cluster, bundle.objects, first, merges, options)
    planned = [
        _planned(preview, merged, options) for preview, merged in zip(previews, merges, strict=True)
    ]
    wanted = {preview.key: preview.after or {} for preview in first}
    if bundle.limited_resources is not None:
        configuration = services.limited_resources_manifests(cluster, bundle.limited_resources)
        wanted[services.CONFIGURATION] = configuration[1]
        planned.append(
            _planned_configuration(*configuration, rows.get(services.CONFIGURATION), options)
        )
    planned += _planned_classes(bundle)
    deletions = find_deletions(cluster, options.name, listed=wanted)
    if options.prune:
        planned += [_planned_deletion(each, options) for each in deletions]
    return SetPlan(
        options=options,
        objects=tuple(planned),
        left=() if options.prune else tuple(each.key for each in deletions),
        blocks=tuple(_blocks(planned, deletions, len(wanted), options)),
        hints=tuple(_hints(cluster, previews)),
        number=number,
        previews=tuple(
            (preview, merged.manifest if preview.before else each.manifest)
            for each, preview, merged in zip(bundle.objects, previews, merges, strict=True)
        ),
        wanted=wanted,
        classes=tuple(each.manifest for each in bundle.classes),
    )


def _preview(
    cluster: Cluster, manifests: Sequence[tuple[Wanted, Mapping[str, Any]]], options: SetOptions
) -> list[services.Preview]:
    previews = services.preview_many(
        cluster=cluster,
        manifests=[manifest for _, manifest in manifests],
        create_namespaces=options.create_namespaces,
    )
    problems = [
        problem
        for (wanted, _), preview in zip(manifests, previews, strict=True)
        if preview.error is not None
        for problem in refusal_problems(wanted.item, preview.error, _HINTS)
    ]
    if problems:
        raise ManifestError(problems)
    return previews


def _preview_merged(
    cluster: Cluster,
    objects: Sequence[Wanted],
    first: Sequence[services.Preview],
    merges: Sequence[Merge],
    options: SetOptions,
) -> list[services.Preview]:
    """Preview again the objects that keep fields of others: these belong to what is checked."""
    previews = list(first)
    again = [
        index
        for index, (preview, merged) in enumerate(zip(first, merges, strict=True))
        if preview.before is not None and merged.manifest != preview.after
    ]
    if again:
        manifests = [(objects[index], merges[index].manifest) for index in again]
        for index, preview in zip(again, _preview(cluster, manifests, options), strict=True):
            previews[index] = preview
    return previews


def _merge_of(
    preview: services.Preview,
    row: ObjectManagers | None,
    options: SetOptions,
    *,
    wanted: Mapping[str, Any],
) -> Merge:
    """The stored object with the applied fields, and what other managers have to say."""
    managers = managers_from_json(row.fields if row else {})
    if preview.before is None:
        removed = managers.get(OBJECT)
        if removed is None or removed.manager == options.manager:
            return Merge(manifest=dict(wanted))
        deleted = ManagedField(field=OBJECT, manager=removed)
        return Merge(manifest=dict(wanted), conflicts=(deleted,))
    merged = merge(preview.before, wanted, managers, manager=options.manager)
    if row is None or row.set in ("", options.name):
        return merged
    other_set = ManagedField(field=OBJECT, manager=FieldManager(manager=f"{GIT}{row.set}"))
    return replace(merged, conflicts=(other_set, *merged.conflicts))


def _planned(preview: services.Preview, merged: Merge, options: SetOptions) -> PlannedObject:
    changes = diff_in_words.changes(preview.before, preview.after)
    action: Action = "create" if preview.before is None else "change"
    if preview.before == preview.after:
        action = "unchanged"
    if merged.conflicts and not options.force:
        action = "conflict"
    return PlannedObject(
        key=preview.key,
        action=action,
        before=preview.before,
        after=preview.after,
        changes=tuple(changes),
        conflicts=merged.conflicts,
        kept=merged.kept,
        revision=preview.stored.revision if preview.stored else 0,
    )


def _planned_configuration(
    before: dict[str, Any], after: dict[str, Any], row: ObjectManagers | None, options: SetOptions
) -> PlannedObject:
    merged = merge(
        before, after, managers_from_json(row.fields if row else {}), manager=options.manager
    )
    preview = services.Preview(key=services.CONFIGURATION, before=before, after=after)
    return _planned(preview, merged, options)


def _planned_classes(bundle: Bundle) -> list[PlannedObject]:
    if not bundle.classes:
        return []
    stored = {each.name: each for each in NamespaceClass.objects.all()}
    planned = []
    for wanted in bundle.classes:
        known = stored.get(wanted.key[2])
        before, after = known.manifest if known else None, services.read_class(wanted.manifest)
        action: Action = "create" if before is None else "change"
        planned.append(
            PlannedObject(
                key=wanted.key,
                action="unchanged" if before == after else action,
                before=before,
                after=after,
                changes=tuple(diff_in_words.changes(before, after)),
                revision=known.version if known else 0,
            )
        )
    return planned


def _planned_deletion(deletion: Deletion, options: SetOptions) -> PlannedObject:
    conflicts = others(deletion.managers, options.manager)
    before = deletion.stored.to_manifest()
    return PlannedObject(
        key=deletion.key,
        action="conflict" if conflicts and not options.force else "delete",
        before=before,
        changes=tuple(diff_in_words.changes(before, None)),
        conflicts=conflicts,
        revision=deletion.stored.revision,
    )


def _blocks(
    planned: Sequence[PlannedObject],
    deletions: Sequence[Deletion],
    listed: int,
    options: SetOptions,
) -> list[Block]:
    """The reasons for which nothing is written."""
    blocks = []
    if in_conflict := [each for each in planned if each.action == "conflict"]:
        count = sum(len(each.conflicts) for each in in_conflict)
        message = (
            f"{count} {'fields are' if count > 1 else 'field is'} managed by others: "
            "change the documents, or take them over with force"
        )
        blocks.append(Block(code="conflict", message=message))
    if not options.prune:
        return blocks
    count = len(deletions)
    if brake(count, listed + count) and options.confirmed != count:
        message = (
            f"{count} of {listed + count} objects of the set would be deleted: "
            f"confirm it with confirmDeletions {count}"
        )
        blocks.append(Block(code="prune-brake", message=message))
    blocks += [
        Block(
            code="namespace-not-empty",
            message=f"Namespace {each.key[2]} has policies that the set does not manage: "
            f"{', '.join(each.others_inside)}; delete or move them first",
        )
        for each in deletions
        if each.others_inside
    ]
    return blocks


def _hints(cluster: Cluster, previews: Sequence[services.Preview]) -> list[str]:
    """The lints of the namespaces that would change."""
    changed = [each for each in previews if each.before != each.after]
    return [str(lint) for lint in services.lint_previews(cluster, changed)]


def _text_of(manifest: dict[str, Any] | None) -> str:
    if manifest is None:
        return ""
    if manifest["kind"] == services.CONFIGURATION[0]:
        return render_documents([admission_configuration(manifest["limitedResources"])])
    return render_manifests([manifest])
