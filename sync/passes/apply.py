"""The third step of a pass: apply the portal's changes to the cluster.

Before each write there is an intent on record, with each write goes the version that was judged,
and what came of it is recorded with the object's row in one transaction.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

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
    from sync.models import SyncResult
    from sync.passes.compare import ComparedObject
    from sync.passes.journal import Journal

    Manifest = dict[str, Any]

TRIES: Final = 5
"""How often a write is tried that others come before."""
WRITES: Final = frozenset({"create", "update", "delete"})
DONE: Final = Outcome.DONE.value
FAILED: Final = Outcome.FAILED.value
CONFLICT: Final = Outcome.CONFLICT.value
_INTERNAL: Final = 500
_SERVER_FIELDS: Final = ("managedFields", "creationTimestamp", "generation", "selfLink")


class PassWriter:
    """Carries out what a pass decided, in one cluster."""

    def __init__(
        self, cluster: Cluster, client: Client, journal: Journal, *, now: dt.datetime
    ) -> None:
        self._cluster, self._client, self._journal, self._now = cluster, client, journal, now

    def write(self, items: Sequence[ComparedObject], *, namespaces: Mapping[str, str]) -> None:
        """Write each object once; what is refused by itself holds up no other.

        ``namespaces`` are the phases of those that the cluster has. Raises ``APIError`` where the
        cluster as a whole does not let us work.
        """
        self._journal.stage("writing", total=len(items))
        for item in items:
            if problem := _place_problem(item, namespaces):
                self._refuse(item, problem)
            elif self._journal.is_preview:
                self._try(item)
            else:
                self._write(item)
            self._journal.step()

    def _refuse(self, item: ComparedObject, problem: str) -> None:
        with self._journal.lease.guard():
            self._journal.note(item, item.verdict.action, FAILED, problem)
            self._journal.flush()
            if not self._journal.is_preview:
                baseline.remember(self._cluster, [item], now=self._now)

    def _try(self, item: ComparedObject) -> None:
        """Ask the API server what it would say; nothing is stored anywhere but in the result."""
        outcome, words = DONE, f"would {item.verdict.action}"
        try:
            carry_out(self._client, item, dry_run=True)
        except APIError as error:
            if not is_about_one_object(error):
                raise
            outcome, words = FAILED, str(error)
        with self._journal.lease.guard():
            self._journal.note(item, item.verdict.action, outcome, words)
            self._journal.flush()

    def _write(self, item: ComparedObject) -> None:
        result = self._journal.intend(item, item.verdict.action)
        if result is None:
            return
        outcome, words = CONFLICT, f"others wrote it first, {TRIES} times"
        after = _in_conflict(item)
        for _ in range(TRIES):
            if problem := self._problem(item):
                outcome, words, after = FAILED, problem, _as_it_stays(item)
                break
            if item.verdict.action not in WRITES:
                outcome, words, after = _overtaken(item)
                break
            self._journal.lease.check()
            try:
                live = carry_out(self._client, item)
            except ConflictError:
                item = self._read_again(item)
                after = _in_conflict(item)
                continue
            except APIError as error:
                if not is_about_one_object(error):
                    raise
                outcome, words, after = FAILED, str(error), item
                break
            outcome, words, after = DONE, "", _written(item, live)
            break
        self._settle(result, after, outcome, words)

    def _problem(self, item: ComparedObject) -> str:
        """Why nothing may be written to the object any more; empty otherwise."""
        if not read_ownership(self._cluster).covers(item.key):
            return "the portal does not own it any more"
        if item.live is not None and is_leaving(item.live):
            return "the cluster's object is being deleted, and waits for its finalizers"
        return ""

    def _read_again(self, item: ComparedObject) -> ComparedObject:
        """Take their side as it is now, and judge the three anew."""
        key = item.key
        return _with_live(item, self._client.get(key.kind, key.name, key.namespace))

    def _settle(self, result: SyncResult, item: ComparedObject, outcome: str, words: str) -> None:
        with self._journal.lease.guard():
            self._journal.settle(result, outcome, words)
            baseline.remember(self._cluster, [item], now=self._now)


def _place_problem(item: ComparedObject, namespaces: Mapping[str, str]) -> str:
    """Why nothing can be written there, known beforehand; empty otherwise."""
    phase = namespaces.get(item.key.namespace)
    if phase is None:
        return f"the cluster has no namespace {item.key.namespace}"
    return f"namespace {item.key.namespace} is being deleted" if phase == "Terminating" else ""


def is_about_one_object(error: APIError) -> bool:
    """Whether it says something about this object only, so that the others can go on."""
    if isinstance(error, ForbiddenError):
        return not _is_missing_permission(error)
    if isinstance(error, BusyError):
        return error.code == _INTERNAL and error.retry_after is None
    return isinstance(error, (InvalidError, NotFoundError, AlreadyExistsError, ConflictError))


def _is_missing_permission(error: ForbiddenError) -> bool:
    """Distinguish RBAC's own words from those of an admission plugin, which are 403, too."""
    return 'User "' in error.message and '" cannot ' in error.message


def carry_out(client: Client, item: ComparedObject, *, dry_run: bool = False) -> Manifest | None:
    """Do to the cluster what the verdict says, once; gives the object as it is then."""
    if item.verdict.action == "delete":
        _delete(client, item, dry_run=dry_run)
        return None
    manifest = item.ours.manifest if item.ours else {}
    if item.live is None:
        return client.apply(manifest, dry_run=dry_run, resource_version=NEW)
    return _update(client, item, manifest, dry_run=dry_run)


def _delete(client: Client, item: ComparedObject, *, dry_run: bool) -> None:
    metadata = (item.live or {})["metadata"]
    key = item.key
    try:
        client.delete(
            key.kind,
            key.name,
            key.namespace,
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            dry_run=dry_run,
        )
    except NotFoundError:
        return  # somebody else was faster, and of the same mind


def _update(client: Client, item: ComparedObject, manifest: Manifest, *, dry_run: bool) -> Manifest:
    """Apply; where that would leave fields of others in place, write the whole object instead.

    Fields that others own are taken only as they were when both sides last agreed: the verdict says
    that nobody changed them since, and the version sent along keeps it so.
    """
    live = item.live or {}
    version, uid = live["metadata"]["resourceVersion"], live["metadata"]["uid"]
    bound = {"resource_version": version, "uid": uid}  # a version alone would make it anew
    force = False
    try:
        tried = client.apply(manifest, dry_run=True, **bound)
    except FieldConflictError:
        force = True
        tried = client.apply(manifest, dry_run=True, force=True, **bound)
    if reconcile.differences(item.ours_normal or {}, reconcile.normal(tried)):
        return client.replace(whole(item), dry_run=dry_run)
    if dry_run:
        return tried
    return client.apply(manifest, force=force, **bound)


def whole(item: ComparedObject) -> Manifest:
    """Their object with our content: what does not count stays as it is there."""
    live, ours = copy.deepcopy(item.live or {}), item.ours.manifest if item.ours else {}
    metadata = {k: v for k, v in live["metadata"].items() if k not in _SERVER_FIELDS}
    counted = (item.theirs or {}).get("metadata") or {}
    for name in ("labels", "annotations"):
        left = metadata.pop(name, None) or {}
        kept = {k: v for k, v in left.items() if k not in (counted.get(name) or {})}
        if merged := {**kept, **(ours["metadata"].get(name) or {})}:
            metadata[name] = merged
    return {**ours, "metadata": metadata}


def _written(item: ComparedObject, live: Manifest | None) -> ComparedObject:
    """Judge an object after our write: what we wrote is what was agreed on.

    Where the cluster made something else of it, that is drift, and not written again and again.
    """
    base = item.ours_normal if live is not None else None
    return judge_one(item.key, ours=item.ours, live=live, row=item.row, base=base, owned=item.owned)


def _with_live(item: ComparedObject, live: Manifest | None) -> ComparedObject:
    return judge_one(
        item.key, ours=item.ours, live=live, row=item.row, base=item.base, owned=item.owned
    )


def _as_it_stays(item: ComparedObject) -> ComparedObject:
    """Take an object that is being deleted for gone, as every pass does."""
    is_gone = item.live is not None and is_leaving(item.live)
    return _with_live(item, None) if is_gone else item


def _in_conflict(item: ComparedObject) -> ComparedObject:
    return replace(item, verdict=replace(item.verdict, state="conflict", action="conflict"))


def _overtaken(item: ComparedObject) -> tuple[str, str, ComparedObject]:
    """Say what became of an object that others wrote while we tried."""
    if item.agrees:
        return DONE, "others made the same of it", item
    return CONFLICT, "others changed it meanwhile", item
