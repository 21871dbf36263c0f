"""PassWriter, step three: apply, replace or delete in the cluster, retry conflicts, dry runs.

The intent is recorded before each write, each write carries the version that was judged, and its
outcome is recorded with the object's row in one transaction.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from policies.managed_fields import normal
from sync import reconcile
from sync.errors import (
    AlreadyExistsError,
    APIError,
    BusyError,
    ConflictError,
    FieldConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from sync.passes import baseline
from sync.passes.compare import judge_one
from sync.passes.journal import Outcome
from sync.passes.read import is_leaving, read_ownership
from sync.values import NEW

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from policies.models import Cluster
    from sync.client import Client
    from sync.passes.compare import ComparedObject
    from sync.passes.journal import Journal

    Manifest = dict[str, Any]

TRIES: Final = 5
"""The attempts of a write that conflicts with other writers."""
WRITES: Final = frozenset({"create", "update", "delete"})
DONE: Final = Outcome.DONE.value
FAILED: Final = Outcome.FAILED.value
CONFLICT: Final = Outcome.CONFLICT.value
_INTERNAL: Final = 500
_SERVER_FIELDS: Final = ("managedFields", "creationTimestamp", "generation", "selfLink")


class PassWriter:
    """Carries out the verdicts of a pass in one cluster."""

    def __init__(
        self, cluster: Cluster, client: Client, journal: Journal, *, now: dt.datetime
    ) -> None:
        self._cluster, self._client, self._journal, self._now = cluster, client, journal, now

    def write(self, objects: Sequence[ComparedObject], *, namespaces: Mapping[str, str]) -> None:
        """Write each object once; the failure of one does not stop the others.

        ``namespaces`` maps the cluster's namespaces to their phases. Raises ``APIError`` if the
        cluster as a whole does not let us work.
        """
        self._journal.stage("writing", total=len(objects))
        for to_write in objects:
            if namespace_trouble := _namespace_problem(to_write, namespaces):
                self._note_unwritten(to_write, FAILED, namespace_trouble)
            elif self._journal.is_preview:
                self._dry_run_one(to_write)
            else:
                self._write_one(to_write)
            self._journal.step()

    def _note_unwritten(self, to_write: ComparedObject, outcome: str, words: str) -> None:
        with self._journal.lease.guard():
            self._journal.note(to_write, to_write.verdict.action, outcome, words)
            self._journal.flush()
            if not self._journal.is_preview:
                baseline.remember(self._cluster, [to_write], now=self._now)

    def _dry_run_one(self, to_write: ComparedObject) -> None:
        """Try a write as a dry run; only the result is stored."""
        outcome, outcome_words = DONE, f"would {to_write.verdict.action}"
        try:
            carry_out(self._client, to_write, dry_run=True)
        except APIError as error:
            if not is_about_one_object(error):
                raise
            outcome, outcome_words = FAILED, str(error)
        self._note_unwritten(to_write, outcome, outcome_words)

    def _write_one(self, item: ComparedObject) -> None:
        intended = self._journal.intend(item, item.verdict.action)
        if intended is None:
            return
        outcome, words = CONFLICT, f"others wrote it first, {TRIES} times"
        after_write = _item_in_conflict(item)
        for _ in range(TRIES):
            if problem := self._write_problem(item):
                # An object that is being deleted counts as gone, as in every pass.
                is_gone = item.live is not None and is_leaving(item.live)
                outcome, words, after_write = (
                    FAILED,
                    problem,
                    _item_with_live(item, None) if is_gone else item,
                )
                break
            if item.verdict.action not in WRITES:
                outcome, words, after_write = _outcome_if_overtaken(item)
                break
            # The cluster knows no epochs: a worker that lost its lease must find out before.
            self._journal.lease.check()
            try:
                live = carry_out(self._client, item)
            except ConflictError:
                key = item.key
                item = _item_with_live(item, self._client.get(key.kind, key.name, key.namespace))
                after_write = _item_in_conflict(item)
                continue
            except APIError as error:
                if not is_about_one_object(error):
                    raise
                outcome, words, after_write = FAILED, str(error), item
                break
            outcome, words, after_write = DONE, "", _item_after_write(item, live)
            break
        with self._journal.lease.guard():
            self._journal.settle(intended, outcome, words)
            baseline.remember(self._cluster, [after_write], now=self._now)

    def _write_problem(self, to_write: ComparedObject) -> str:
        """The reason why the object may not be written any more; empty if it may."""
        # Read for each object: a long pass must notice that ownership was released meanwhile.
        if not read_ownership(self._cluster).covers(to_write.key):
            return "the portal no longer owns it"
        if to_write.live is not None and is_leaving(to_write.live):
            return "the cluster's object is being deleted, and waits for its finalizers"
        return ""


def _namespace_problem(to_write: ComparedObject, namespaces: Mapping[str, str]) -> str:
    """The reason why nothing can be written in a namespace; empty if it can."""
    phase = namespaces.get(to_write.key.namespace)
    if phase is None:
        return f"the cluster has no namespace {to_write.key.namespace}"
    return f"namespace {to_write.key.namespace} is being deleted" if phase == "Terminating" else ""


def is_about_one_object(error: APIError) -> bool:
    """Whether an error concerns this object only, so that the pass can continue with others."""
    if isinstance(error, ForbiddenError):
        # Both RBAC and admission plugins answer 403; only the wording of RBAC is fixed.
        return not ('User "' in error.message and '" cannot ' in error.message)
    if isinstance(error, BusyError):
        # A failing webhook or conversion is a plain 500; an overloaded server sends Retry-After.
        return error.code == _INTERNAL and error.retry_after is None
    return isinstance(error, (InvalidError, NotFoundError, AlreadyExistsError, ConflictError))


def carry_out(client: Client, item: ComparedObject, *, dry_run: bool = False) -> Manifest | None:
    """Carry out a verdict in the cluster, once; returns the object as it is then."""
    if item.verdict.action == "delete":
        metadata, key = (item.live or {})["metadata"], item.key
        # Another client may have deleted it since the read, with the same result.
        with suppress(NotFoundError):
            client.delete(
                key.kind,
                key.name,
                key.namespace,
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
                dry_run=dry_run,
            )
        return None
    manifest = item.ours.manifest if item.ours else {}
    if item.live is None:
        return client.apply(manifest, dry_run=dry_run, resource_version=NEW)
    return _update(client, item, manifest, dry_run=dry_run)


def _update(client: Client, item: ComparedObject, manifest: Manifest, *, dry_run: bool) -> Manifest:
    """Apply, or replace the whole object if an apply would leave fields of other managers."""
    live = item.live or {}
    live_version, uid = live["metadata"]["resourceVersion"], live["metadata"]["uid"]
    guards = {"resource_version": live_version, "uid": uid}  # a version alone would create it again
    # Forcing overwrites no edit: by the verdict nobody changed the fields since both sides agreed,
    # and the version makes the API server refuse if somebody changes them now.
    force = False
    try:
        dry_applied = client.apply(manifest, dry_run=True, **guards)
    except FieldConflictError:
        force = True
        dry_applied = client.apply(manifest, dry_run=True, force=True, **guards)
    # Apply removes only fields that we own alone; a field of another manager would stay.
    if reconcile.differences(item.ours_normal or {}, normal(dry_applied)):
        return client.replace(whole(item), dry_run=dry_run)
    if dry_run:
        return dry_applied
    return client.apply(manifest, force=force, **guards)


def whole(to_write: ComparedObject) -> Manifest:
    """Their object with our content; metadata outside the normal form stays theirs."""
    live, ours = copy.deepcopy(to_write.live or {}), to_write.ours.manifest if to_write.ours else {}
    metadata = {k: v for k, v in live["metadata"].items() if k not in _SERVER_FIELDS}
    counted = (to_write.theirs or {}).get("metadata") or {}
    for name in ("labels", "annotations"):
        live_map = metadata.pop(name, None) or {}
        kept_by_others = {k: v for k, v in live_map.items() if k not in (counted.get(name) or {})}
        if merged_map := {**kept_by_others, **(ours["metadata"].get(name) or {})}:
            metadata[name] = merged_map
    return {**ours, "metadata": metadata}


def _item_after_write(item: ComparedObject, live: Manifest | None) -> ComparedObject:
    """Judge an object after our write."""
    # What we wrote is agreed on. If a webhook of the cluster changed it, that is drift: a pending
    # verdict would write it again and again.
    base = item.ours_normal if live is not None else None
    return judge_one(item.key, ours=item.ours, live=live, row=item.row, base=base, owned=item.owned)


def _item_with_live(item: ComparedObject, live: Manifest | None) -> ComparedObject:
    return judge_one(
        item.key, ours=item.ours, live=live, row=item.row, base=item.base, owned=item.owned
    )


def _item_in_conflict(item: ComparedObject) -> ComparedObject:
    return replace(item, verdict=replace(item.verdict, state="conflict", action="conflict"))


def _outcome_if_overtaken(overtaken: ComparedObject) -> tuple[str, str, ComparedObject]:
    """The outcome for an object that others wrote while we tried."""
    if overtaken.agrees:
        return DONE, "others made the same of it", overtaken
    return CONFLICT, "others changed it meanwhile", overtaken
