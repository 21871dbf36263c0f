"""``take_in``: a cluster's objects adopted into policies or forgotten, in batches, lints noted.

In batches: the policies of some namespaces, their rows and the run's results are one transaction
under the lease. New policies are stored in a few statements for each batch, all others one by one.
"""

from __future__ import annotations

from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

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

    from sync.passes.compare import ComparedObject
    from sync.passes.journal import Journal

BATCH: Final = 200
"""New objects in one transaction; a namespace is not divided."""
EACH: Final = 4
"""The cost of an object that is stored by itself, in new objects that are stored together."""
REASON: Final = "as the cluster has it"


class _LeftError(Exception):
    """The portal keeps its object; the message is the reason."""


def take_in(
    cluster: Cluster, items: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    """Carry out ``take-in`` and ``forget``; the failure of one object does not stop the others."""
    journal.stage("importing", total=len(items))
    for batch in _batches(items):
        with journal.lease.guard(), our_own_write(cluster):
            # Reviews lock a namespace's quotas first, too: any other order could deadlock.
            services.lock_used(cluster, {item.key.namespace for item in batch})
            made = _create_together(cluster, [item for item in batch if _is_new(item)])
            with services.in_bulk():
                done = [_import_one(cluster, item, made.get(item.key), journal) for item in batch]
            _note_lints(cluster, done, journal)
            journal.flush()
            baseline.remember(cluster, done, now=now)
        journal.step(len(batch))


def note_native(cluster: Cluster, journal: Journal, namespaces: Collection[str] | None) -> None:
    """Note which policies of some namespaces the cluster has itself; None stands for all."""
    with journal.lease.guard(), our_own_write(cluster):
        policy_writes.note_native(cluster, namespaces)


def _batches(items: Sequence[ComparedObject]) -> Iterator[list[ComparedObject]]:
    """Order the objects: namespaces and classes first, then policies, then deletions."""
    ending = [item for item in items if item.verdict.action == "forget"]
    coming = [item for item in items if item.verdict.action != "forget"]
    of_cluster = [item for item in coming if item.key.kind in READ_KINDS]
    policies = [item for item in coming if item.key.kind not in READ_KINDS]
    policies.sort(key=lambda item: (item.key.namespace, item.key))
    # A namespace goes after its policies, since it must be empty.
    ending.sort(key=lambda item: (item.key.kind in READ_KINDS, item.key.namespace))
    groups = groupby(policies, key=lambda item: item.key.namespace)
    yield from _chunks([[item] for item in of_cluster])
    yield from _chunks(list(group) for _, group in groups)
    yield from _chunks([[item] for item in ending])


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


def _create_together(cluster: Cluster, items: Sequence[ComparedObject]) -> dict[ObjectKey, Stored]:
    """Store new policies together; those without a result are tried one by one."""
    try:
        saved = services.create_many(
            cluster=cluster,
            manifests=[manifest_of(item.live or {}) for item in items],
            user=user_of(cluster),
            reason=REASON,
            # The cluster has all of them, so that its own plugins enforce them already.
            is_native=True,
        )
    except (IntegrityError, DataError):
        # One bad object spoils a statement for all: one by one, only that one is refused.
        return {}
    return {
        item.key: Stored(one.revision.after or {}, one.revision.number)
        for item, one in zip(items, saved, strict=True)
        if one is not None and one.revision is not None
    }


def _import_one(
    cluster: Cluster, item: ComparedObject, made: Stored | None, journal: Journal
) -> ComparedObject:
    """Import one object unless it was created already, and judge it again."""
    action = item.verdict.action
    try:
        if made is not None:
            after = _judged_again(item, made)
        else:
            after = (
                _forget_object(cluster, item)
                if action == "forget"
                else _adopt_object(cluster, item)
            )
    except ValidationError as error:
        words = "; ".join(
            f"{path}: {entry['message']}" if path else entry["message"]
            for path, entries in errors_by_path(error).items()
            for entry in entries
        )
        journal.note(item, action, Outcome.FAILED, words)
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


def _adopt_object(cluster: Cluster, item: ComparedObject) -> ComparedObject:
    """Store their side as ours, unless ours was written since it was read."""
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
    return _judged_again(item, Stored(stored.to_manifest(), stored.revision))


def _judged_again(item: ComparedObject, ours: Stored | None) -> ComparedObject:
    """Judge an object again whose sides are equal by now."""
    return judge_one(
        item.key, ours=ours, live=item.live, row=item.row, base=item.theirs, owned=item.owned
    )


def _forget_object(cluster: Cluster, item: ComparedObject) -> ComparedObject:
    key, user, reason = item.key, user_of(cluster), "the cluster has it no more"
    stored = services.find_object(cluster, kind=key.kind, name=key.name, namespace=key.namespace)
    if isinstance(stored, PolicyObject):
        expected = item.ours.revision if item.ours else 0
        services.delete_policy(policy=stored, user=user, reason=reason, expected_revision=expected)
    elif isinstance(stored, PriorityClass):
        services.delete_priority_class(priority_class=stored, user=user, reason=reason)
    elif isinstance(stored, Namespace):
        # Its policies with edits of ours stay for a person's resolution, and their namespace too.
        if any(kind.objects.filter(namespace=stored).exists() for kind in services.KINDS.values()):
            raise _LeftError("policies of this namespace are kept here; it goes when they go")
        services.delete_namespace(namespace=stored, user=user, reason=reason)
    return _judged_again(item, None)


def _note_lints(cluster: Cluster, items: Sequence[ComparedObject], journal: Journal) -> None:
    """Add the lints of the namespaces to the results of their policies."""
    namespaces = {item.key.namespace for item in items} - {""}
    for lint in chain.from_iterable(services.lint_all(cluster, sorted(namespaces)).values()):
        policy = lint.policy
        noted_result = journal.noted.get(ObjectKey(policy.kind, policy.namespace, policy.name))
        if noted_result is not None:
            line = f"{lint.code}: {lint.message}"
            noted_result.message = (
                f"{noted_result.message}\n{line}" if noted_result.message else line
            )
            journal.counts["lints"] += 1
