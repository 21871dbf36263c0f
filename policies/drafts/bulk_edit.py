"""An EditPlan of many policies: their mode, deletion or copies; saved all or none, and undone."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction

from engine.policy import Enforcement
from policies import services, snapshot
from policies.drafts import bulk_import
from policies.drafts.bulk_import import OvertakenError
from policies.managed_fields import managers_from_json, overwritten
from policies.manifests import diff_in_words
from policies.models import Cluster, KeptTest, Namespace, PolicyRevision, PriorityClass
from policies.object_rules import with_enforcement
from policies.services.changes import ClusterPart, namespaces_of, store_part, take_back
from policies.validators import findings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from policies.managed_fields import ManagedField

    Key = tuple[str, str, str]
    May = Callable[[str, str, Key], bool]

MOST_POLICIES: Final = 2_000
"""So many policies fit one edit, as they fit one import."""
Verb = Literal["created", "changed", "deleted", "unchanged", "refused"]
Action = Literal["mode", "delete", "copy"]
Batch = tuple[tuple[str, int], ...]
"""The clusters of a saved edit, each with the number that its revisions have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is asked for: a mode, copies in some namespaces (``team-*`` are many), or deletion."""

    action: Action
    mode: str = ""
    namespaces: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEdit:
    """What happens to one object; ``refusal`` says why nothing does."""

    cluster: str
    key: Key
    verb: Verb
    changes: Sequence[str] = ()
    overwrites: Sequence[ManagedField] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """All of an edit before it is saved; ``seen`` is a digest of what the plan shows."""

    edits: tuple[PlannedEdit, ...] = ()
    parts: tuple[ClusterPart, ...] = ()
    seen: str = ""

    @property
    def written(self) -> list[PlannedEdit]:
        """Those that saving writes."""
        return [each for each in self.edits if each.verb not in ("unchanged", "refused")]

    @property
    def refused(self) -> list[PlannedEdit]:
        """Those that stay as they are, for a reason."""
        return [each for each in self.edits if each.verb == "refused"]


@dataclass(slots=True)
class _Draft:
    """The plan of one cluster while it is made."""

    cluster: Cluster
    may: May
    edits: list[PlannedEdit] = field(default_factory=list)
    manifests: dict[Key, dict[str, Any]] = field(default_factory=dict)
    deletions: list[Any] = field(default_factory=list)

    def refuse(self, key: Key, why: str) -> None:
        self.edits.append(
            PlannedEdit(cluster=self.cluster.name, key=key, verb="refused", refusal=why)
        )

    def wants(self, action: str, key: Key) -> bool:
        """Whether the person may; a refusal is noted."""
        if self.may(action, self.cluster.name, key):
            return True
        self.refuse(key, "your role does not allow it")
        return False


def plan(policies: Iterable[tuple[str, Key]], edit: Edit, *, may: May) -> EditPlan:
    """Plan an edit of policies, given by cluster and key; it reads alone.

    The number of queries grows with the clusters and not with the policies. Objects that do not
    exist are left out.
    """
    keys_of: dict[str, list[Key]] = defaultdict(list)
    for cluster_name, key in policies:
        keys_of[cluster_name].append(key)
    # By key, as the writes lock them.
    clusters = Cluster.objects.filter(name__in=keys_of).order_by("pk")
    planned = [_plan_part(each, keys_of[each.name], edit, may) for each in clusters]
    edits = tuple(edit for edits, _ in planned for edit in edits)
    parts = tuple(part for _, part in planned if part.previews or part.deletions)
    return EditPlan(edits=edits, parts=parts, seen=_digest(edits))


def _plan_part(
    cluster: Cluster, keys: Sequence[Key], edit: Edit, may: May
) -> tuple[list[PlannedEdit], ClusterPart]:
    # Read first: what is written while we plan makes the plan outdated.
    number = snapshot.revision(cluster.name)
    found = services.stored_by_key(cluster, keys)
    stored = {key: found[key] for key in sorted(set(keys)) if key in found}
    draft = _Draft(cluster, may)
    if edit.action == "delete":
        _draft_deletions(draft, stored)
    elif edit.action == "mode":
        _draft_modes(draft, stored, Enforcement(edit.mode))
    else:
        _draft_copies(draft, stored, edit)
    previews = _preview(draft)
    return draft.edits, ClusterPart(
        cluster=cluster, number=number, previews=previews, deletions=tuple(draft.deletions)
    )


def _draft_deletions(draft: _Draft, stored: Mapping[Key, Any]) -> None:
    for key, policy in stored.items():
        if draft.wants("delete", key):
            draft.deletions.append(policy)
            draft.edits.append(PlannedEdit(cluster=draft.cluster.name, key=key, verb="deleted"))


def _draft_modes(draft: _Draft, stored: Mapping[Key, Any], mode: Enforcement) -> None:
    for key, policy in stored.items():
        if not key[1]:
            draft.refuse(key, "it has no mode")
        elif draft.wants("change", key):
            draft.manifests[key] = with_enforcement(policy.to_manifest(), mode)


def _draft_copies(draft: _Draft, stored: Mapping[Key, Any], edit: Edit) -> None:
    for (kind, namespace, name), policy in stored.items():
        if not namespace:
            draft.refuse((kind, namespace, name), "it is of the whole cluster")
            continue
        manifest = policy.to_manifest()
        copied_name = edit.name or name
        for target in _targets(draft, kind, edit.namespaces):
            key = (kind, target, copied_name)
            if key == (kind, namespace, name):
                continue
            if key in draft.manifests:
                draft.refuse(key, "another selected policy has this kind and name")
            elif draft.wants("add", key):
                metadata = {**manifest["metadata"], "namespace": target, "name": copied_name}
                draft.manifests[key] = {**manifest, "metadata": metadata}


def _targets(draft: _Draft, kind: str, wanted: Iterable[str]) -> list[str]:
    """The namespaces that are named, and those that a ``*`` at the end stands for."""
    found: dict[str, None] = {}
    for name in wanted:
        if not name.endswith("*"):
            found[name] = None
            continue
        begin = name.removesuffix("*")
        matching = Namespace.objects.filter(cluster=draft.cluster, name__startswith=begin)
        names = matching.order_by("name").values_list("name", flat=True)
        # Of those that the person may not write, none is named: it may be hidden.
        found |= {
            each: None for each in names if draft.may("add", draft.cluster.name, (kind, each, ""))
        }
    return list(found)


def _preview(draft: _Draft) -> tuple[tuple[services.Preview, Mapping[str, Any]], ...]:
    """What saving would do with the drafted manifests; notes it, and leaves out the refused."""
    previews = services.preview_many(
        cluster=draft.cluster, manifests=list(draft.manifests.values())
    )
    managers = services.managers_of(draft.cluster, list(draft.manifests))
    written = []
    for preview in previews:
        key = preview.key
        if preview.error is not None:
            draft.refuse(key, findings_of(preview.error)[0].messages[0])
            continue
        if preview.before is not None and not draft.wants("change", key):
            continue
        changes = tuple(diff_in_words.changes(preview.before, preview.after))
        known = managers_from_json(managers[key].fields if key in managers else {})
        verb: Verb = "created" if preview.before is None else "changed"
        draft.edits.append(
            PlannedEdit(
                cluster=draft.cluster.name,
                key=key,
                verb=verb if preview.before != preview.after else "unchanged",
                changes=changes,
                overwrites=overwritten(known, preview.before, preview.after),
            )
        )
        if preview.before != preview.after:
            written.append((preview, draft.manifests[key]))
    return tuple(written)


def dangers_of(shown: EditPlan) -> tuple[list[str], str]:
    """The dangers of saving in words, and what to type for them; empty without dangers."""
    found = [
        bulk_import.dangers_of(part.cluster, bulk_import.Plan(previews=part.previews))
        for part in shown.parts
        if part.previews
    ]
    messages = [message for messages, _ in found for message in messages]
    words = [word for _, word in found if word]
    return messages, words[0] if len(words) == 1 else str(len(messages)) if words else ""


def save(shown: EditPlan, *, user: str, reason: str) -> Batch:
    """Write all of a plan, or nothing; raises ``OvertakenError`` if it is outdated."""
    with transaction.atomic(), ExitStack() as writes:
        # All locks before the first write, in one order, as decisions take them.
        for part in shown.parts:
            writes.enter_context(services.policy_write(part.cluster))
            if snapshot.revision(part.cluster.name) != part.number:
                raise OvertakenError
            services.lock_used(part.cluster, namespaces_of(part))
        return tuple(store_part(part, user=user, reason=reason) for part in shown.parts)


def undo(batch: Batch, *, may: May, user: str) -> int:
    """Take a saved edit of this user back, all of it or nothing; returns the number of objects.

    Raises ``OvertakenError`` where one was written since, ``PermissionError`` where the user may
    no longer write one.
    """
    numbers = dict(batch)
    with transaction.atomic(), ExitStack() as writes:
        clusters = list(Cluster.objects.filter(name__in=numbers).order_by("pk"))
        for cluster in clusters:
            writes.enter_context(services.policy_write(cluster))
        done = 0
        for cluster in clusters:
            revisions = list(
                PolicyRevision.objects.filter(
                    cluster=cluster.name, cluster_revision=numbers[cluster.name], user=user,
                    kind__in=(*services.KINDS, PriorityClass.kind, KeptTest.kind),
                )
            )  # fmt: skip
            _check_undoable(cluster, revisions, may)
            take_back(cluster, revisions, user=user)
            done += len(revisions)
    return done


def _check_undoable(cluster: Cluster, revisions: Sequence[PolicyRevision], may: May) -> None:
    by_key = {(each.kind, each.namespace, each.name): each for each in revisions}
    if not by_key:
        return
    last = services.last_numbers(cluster, list(by_key))
    if any(last[key] != each.number for key, each in by_key.items()):
        raise OvertakenError
    for key, each in by_key.items():
        action = "delete" if each.before is None else "add" if each.after is None else "change"
        if not may(action, cluster.name, key):
            raise PermissionError(key)


def _digest(edits: Iterable[PlannedEdit]) -> str:
    """A digest of what a plan shows: the same again means that nothing was written meanwhile."""
    return hashlib.sha256("\n".join(_lines_of(edits)).encode()).hexdigest()


def _lines_of(edits: Iterable[PlannedEdit]) -> Iterator[str]:
    for each in edits:
        yield json.dumps([each.cluster, *each.key, each.verb, *each.changes, each.refusal])
