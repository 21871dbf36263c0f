"""Import what the cluster decides into the portal, through services.

Batch by batch: the policies of some namespaces, their rows here and the results of the run are one
transaction under the lease, so that none of them is ever there without the others. What is new here
is stored at once, in a few statements a batch; what is not, or is refused, one by one.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError
from django.db.models import ProtectedError

from policies import services
from policies.models import Cluster, Namespace, PolicyObject, PriorityClass
from policies.validators import errors_by_path
from sync import policy_writes
from sync.passes import baseline
from sync.passes.compare import judge_one
from sync.passes.journal import Outcome
from sync.passes.read import Stored, manifest_of
from sync.policy_writes import our_own_write, user_of
from sync.values import READ_KINDS, ObjectKey

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from policies.lints import Lint
    from sync.passes.compare import ComparedObject
    from sync.passes.journal import Journal

BATCH: Final = 200
"""New objects of one transaction; a namespace is not divided."""
EACH: Final = 4
"""As many new objects are stored in the time of one that has to be looked at by itself."""
REASON: Final = "as the cluster has it"


class _LeftError(Exception):
    """The object stays as it is here, for the reason given."""


def take_in(
    cluster: Cluster, items: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    """Carry out ``take-in`` and ``forget``; an object that is refused holds up no other."""
    journal.stage("taking in", total=len(items))
    for batch in _batches(items):
        with journal.lease.guard():
            _take_batch(cluster, batch, journal, now=now)
        journal.step(len(batch))


def _take_batch(
    cluster: Cluster, batch: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    with our_own_write(cluster):
        services.lock_used(cluster, {item.key.namespace for item in batch})
        made = _create(cluster, [item for item in batch if _is_new(item)])
        with services.in_bulk():
            done = [_one(cluster, item, made.get(item.key), journal) for item in batch]
        _say_lints(cluster, done, journal)
        journal.flush()
        baseline.remember(cluster, done, now=now)


def note_native(cluster: Cluster, journal: Journal, namespaces: Collection[str] | None) -> None:
    """Report to the policies which of them the cluster has itself; None: all of them."""
    with journal.lease.guard(), our_own_write(cluster):
        policy_writes.note_native(cluster, namespaces)


def _batches(items: Sequence[ComparedObject]) -> Iterator[list[ComparedObject]]:
    """Namespaces and classes first, namespaces that are gone last, policies together in between."""
    ending = [item for item in items if item.verdict.action == "forget"]
    coming = [item for item in items if item.verdict.action != "forget"]
    of_cluster = [item for item in coming if item.key.kind in READ_KINDS]
    policies = [item for item in coming if item.key.kind not in READ_KINDS]
    ending.sort(key=lambda item: (item.key.kind in READ_KINDS, item.key.namespace))
    yield from _chunks([[item] for item in of_cluster])
    yield from _chunks(_by_namespace(policies))
    yield from _chunks([[item] for item in ending])


def _by_namespace(items: Iterable[ComparedObject]) -> list[list[ComparedObject]]:
    ordered = sorted(items, key=lambda item: (item.key.namespace, item.key))
    return [list(group) for _, group in groupby(ordered, key=lambda item: item.key.namespace)]


def _chunks(groups: Iterable[list[ComparedObject]]) -> Iterator[list[ComparedObject]]:
    batch: list[ComparedObject] = []
    room = BATCH
    for group in groups:
        cost = sum(1 if _is_new(item) else EACH for item in group)
        if batch and cost > room:
            yield batch
            batch, room = [], BATCH
        batch += group
        room -= cost
    if batch:
        yield batch


def _is_new(item: ComparedObject) -> bool:
    return item.verdict.action == "take-in" and item.ours is None


def _create(cluster: Cluster, items: Sequence[ComparedObject]) -> dict[ObjectKey, Stored]:
    """Store at once what can be; what is not among the results is tried by itself, and explained.

    The cluster has all of it, so that its own plugins are said to enforce it from the beginning.
    """
    try:
        saved = services.create_many(
            cluster=cluster,
            manifests=[manifest_of(item.live or {}) for item in items],
            user=user_of(cluster),
            reason=REASON,
            is_native=True,
        )
    except (IntegrityError, DataError):
        return {}
    return {
        item.key: Stored(one.revision.after or {}, one.revision.number)
        for item, one in zip(items, saved, strict=True)
        if one is not None and one.revision is not None
    }


def _one(
    cluster: Cluster, item: ComparedObject, made: Stored | None, journal: Journal
) -> ComparedObject:
    """Write one object that was not made yet, and judge it anew; a refused one stays as it was."""
    action = item.verdict.action
    try:
        if made is not None:
            after = _again(item, made)
        else:
            after = _forget(cluster, item) if action == "forget" else _adopt(cluster, item)
    except ValidationError as error:
        journal.note(item, action, Outcome.FAILED, _words(error))
        return item
    except services.StaleRevisionError as error:
        journal.note(item, action, Outcome.FAILED, str(error))
        return item
    except (_LeftError, ProtectedError, IntegrityError, DataError) as error:
        journal.note(item, action, Outcome.FAILED, str(error.args[0]))
        return item
    if item.ours != after.ours:
        journal.note(item, action, Outcome.DONE)
    return after


def _adopt(cluster: Cluster, item: ComparedObject) -> ComparedObject:
    """Make ours what theirs is, unless somebody wrote ours since it was read."""
    live = item.live or {}
    saved = services.apply_manifest(
        cluster=cluster,
        manifest=manifest_of(live),
        user=user_of(cluster),
        reason=REASON,
        expected_revision=item.ours.revision if item.ours else 0,
        create_namespace=True,
    )
    stored = saved.instance
    return _again(item, Stored(stored.to_manifest(), stored.revision))


def _again(item: ComparedObject, ours: Stored | None) -> ComparedObject:
    """Judge an object anew whose two sides are the same by now."""
    return judge_one(
        item.key, ours=ours, live=item.live, row=item.row, base=item.theirs, owned=item.owned
    )


def _forget(cluster: Cluster, item: ComparedObject) -> ComparedObject:
    key = item.key
    stored = services.find_object(cluster, kind=key.kind, name=key.name, namespace=key.namespace)
    if stored is not None:
        _delete(stored, item, user=user_of(cluster))
    return _again(item, None)


def _delete(stored: Any, item: ComparedObject, *, user: str) -> None:
    reason = "the cluster has it no more"
    if isinstance(stored, PolicyObject):
        expected = item.ours.revision if item.ours else 0
        services.delete_policy(policy=stored, user=user, reason=reason, expected_revision=expected)
    elif isinstance(stored, PriorityClass):
        services.delete_priority_class(priority_class=stored, user=user, reason=reason)
    elif isinstance(stored, Namespace):
        _require_empty(stored)
        services.delete_namespace(namespace=stored, user=user, reason=reason)


def _require_empty(namespace: Namespace) -> None:
    """Keep a namespace whose policies are kept: somebody has to decide on those first."""
    for model in services.KINDS.values():
        if model.objects.filter(namespace=namespace).exists():
            raise _LeftError("policies of this namespace are kept here; it goes when they go")


def _say_lints(cluster: Cluster, items: Sequence[ComparedObject], journal: Journal) -> None:
    """Put what the lints say about the namespaces beside the results of their policies."""
    namespaces = {item.key.namespace for item in items} - {""}
    for lints in services.lint_all(cluster, sorted(namespaces)).values():
        for lint in lints:
            _say(lint, journal)


def _say(lint: Lint, journal: Journal) -> None:
    policy = lint.policy
    found = journal.noted.get(ObjectKey(policy.kind, policy.namespace, policy.name))
    if found is not None:
        line = f"{lint.code}: {lint.message}"
        found.message = f"{found.message}\n{line}" if found.message else line
        journal.counts["lints"] += 1


def _words(error: ValidationError) -> str:
    return "; ".join(
        f"{path}: {entry['message']}" if path else entry["message"]
        for path, entries in errors_by_path(error).items()
        for entry in entries
    )
