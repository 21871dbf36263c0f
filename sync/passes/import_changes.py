"""``import_objects``: a cluster's objects stored as policies or forgotten, in batches, lints noted.

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


def import_objects(
    cluster: Cluster, to_import: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    """Carry out ``import`` and ``forget``; the failure of one object does not stop the others."""
    journal.stage("importing", total=len(to_import))
    for batch in _batches(to_import):
        with journal.lease.guard(), our_own_write(cluster):
            # Reviews lock a namespace's quotas first, too: any other order could deadlock.
            services.lock_used(cluster, {item.key.namespace for item in batch})
            overtaken = baseline.seen_since(cluster, {item.key for item in batch}, now)
            batch = [item for item in batch if item.key not in overtaken]  # noqa: PLW2901 - the rest of it
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


def _batches(to_import: Sequence[ComparedObject]) -> Iterator[list[ComparedObject]]:
    """Order the objects: namespaces and classes first, then policies, then deletions."""
    forgotten = [imported for imported in to_import if imported.verdict.action == "forget"]
    adopted = [imported for imported in to_import if imported.verdict.action != "forget"]
    of_whole_cluster = [imported for imported in adopted if imported.key.kind in READ_KINDS]
    policies = [imported for imported in adopted if imported.key.kind not in READ_KINDS]
    policies.sort(key=lambda imported: (imported.key.namespace, imported.key))
    # A namespace goes after its policies, since it must be empty.
    forgotten.sort(key=lambda imported: (imported.key.kind in READ_KINDS, imported.key.namespace))
    by_namespace = groupby(policies, key=lambda imported: imported.key.namespace)
    yield from _batches_of_groups([[imported] for imported in of_whole_cluster])
    yield from _batches_of_groups(list(group) for _, group in by_namespace)
    yield from _batches_of_groups([[imported] for imported in forgotten])


def _batches_of_groups(groups: Iterable[list[ComparedObject]]) -> Iterator[list[ComparedObject]]:
    import_batch: list[ComparedObject] = []
    room_left = BATCH
    for namespace_group in groups:
        group_cost = sum(1 if _is_new(imported) else EACH for imported in namespace_group)
        if import_batch and group_cost > room_left:
            yield import_batch
            import_batch, room_left = [], BATCH
        import_batch += namespace_group
        room_left -= group_cost
    if import_batch:
        yield import_batch


def _is_new(imported: ComparedObject) -> bool:
    return imported.verdict.action == "import" and imported.ours is None


def _create_together(cluster: Cluster, items: Sequence[ComparedObject]) -> dict[ObjectKey, Stored]:
    """Store new policies together; those without a result are tried one by one."""
    try:
        created = services.create_many(
            cluster=cluster,
            manifests=[manifest_of(imported.live or {}) for imported in items],
            user=user_of(cluster),
            reason=REASON,
            # The cluster has all of them, so that its own plugins enforce them already.
            is_native=True,
        )
    except (IntegrityError, DataError):
        # One bad object spoils a statement for all: one by one, only that one is refused.
        return {}
    return {
        imported.key: Stored(created_one.revision.after or {}, created_one.revision.number)
        for imported, created_one in zip(items, created, strict=True)
        if created_one is not None and created_one.revision is not None
    }


def _import_one(
    cluster: Cluster, imported: ComparedObject, created: Stored | None, journal: Journal
) -> ComparedObject:
    """Import one object unless it was created already, and judge it again."""
    action = imported.verdict.action
    try:
        if created is not None:
            imported_object = _judged_again(imported, created)
        else:
            imported_object = (
                _forget_object(cluster, imported)
                if action == "forget"
                else _adopt_object(cluster, imported)
            )
    except ValidationError as error:
        refusal_words = "; ".join(
            f"{path}: {error_entry['message']}" if path else error_entry["message"]
            for path, path_errors in errors_by_path(error).items()
            for error_entry in path_errors
        )
        journal.note(imported, action, Outcome.FAILED, refusal_words)
        return imported
    except services.StaleRevisionError as error:
        journal.note(imported, action, Outcome.FAILED, str(error))
        return imported
    except (_LeftError, ProtectedError, IntegrityError, DataError) as error:
        journal.note(imported, action, Outcome.FAILED, str(error.args[0]))
        return imported
    if imported.ours != imported_object.ours:
        journal.note(imported, action, Outcome.DONE)
    return imported_object


def _adopt_object(cluster: Cluster, imported: ComparedObject) -> ComparedObject:
    """Store their side as ours, unless ours was written since it was read."""
    live = imported.live or {}
    applied = services.apply_manifest(
        cluster=cluster,
        manifest=manifest_of(live),
        user=user_of(cluster),
        reason=REASON,
        expected_revision=imported.ours.revision if imported.ours else 0,
        create_namespace=True,
    )
    adopted = applied.instance
    return _judged_again(imported, Stored(adopted.to_manifest(), adopted.revision))


def _judged_again(item: ComparedObject, ours: Stored | None) -> ComparedObject:
    """Judge an object again whose sides are equal by now."""
    return judge_one(
        item.key, ours=ours, live=item.live, row=item.row, base=item.theirs, owned=item.owned
    )


def _forget_object(cluster: Cluster, forgotten: ComparedObject) -> ComparedObject:
    key, user, reason = forgotten.key, user_of(cluster), "the cluster has it no more"
    stored = services.find_object(cluster, kind=key.kind, name=key.name, namespace=key.namespace)
    if isinstance(stored, PolicyObject):
        expected = forgotten.ours.revision if forgotten.ours else 0
        services.delete_policy(policy=stored, user=user, reason=reason, expected_revision=expected)
    elif isinstance(stored, PriorityClass):
        services.delete_priority_class(priority_class=stored, user=user, reason=reason)
    elif isinstance(stored, Namespace):
        # Its policies with edits of ours stay for a person's resolution, and their namespace too.
        if any(kind.objects.filter(namespace=stored).exists() for kind in services.KINDS.values()):
            raise _LeftError("policies of this namespace are kept here; it goes when they go")
        services.delete_namespace(namespace=stored, user=user, reason=reason)
    return _judged_again(forgotten, None)


def _note_lints(cluster: Cluster, items: Sequence[ComparedObject], journal: Journal) -> None:
    """Add the lints of the namespaces to the results of their policies."""
    namespaces = {imported.key.namespace for imported in items} - {""}
    for lint in chain.from_iterable(services.lint_all(cluster, sorted(namespaces)).values()):
        linted = lint.policy
        noted_result = journal.noted.get(ObjectKey(linted.kind, linted.namespace, linted.name))
        if noted_result is not None:
            lint_line = f"{lint.code}: {lint.message}"
            noted_result.message = (
                f"{noted_result.message}\n{lint_line}" if noted_result.message else lint_line
            )
            journal.counts["lints"] += 1
