"""``policy_write``: open writes, lock, revision numbers, ``record``, followers, notify, lint."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction
from django.db.models import Max

from policies import snapshot
from policies.lints import Lint, lint_namespace
from policies.managed_fields import CLASS
from policies.models import Cluster, PolicyRevision, PriorityClass, QuotaUsage, Recorded
from policies.services.field_managers import Written, note_written, writer_of
from policies.validators import PlacedError, as_validation_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from django.core.exceptions import ValidationError

    Key = tuple[str, str, str]
    """Kind, namespace and name of an object of one cluster."""

Action = PolicyRevision.Action
_WRITE_LOCK: Final = 0x6761746B
"""First half of an advisory lock; no other advisory lock of this database begins with it."""
_LOCK_SQL: Final = "SELECT pg_advisory_xact_lock(%s, %s)"


class StaleRevisionError(Exception):
    """The object was written since it was read."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(
            f"the object was changed meanwhile: revision {expected} was expected, "
            f"it is at {found}; read it again"
        )
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The result of a write: the object, its revision (None where nothing changed), and lints."""

    instance: Any
    revision: PolicyRevision | None
    lints: tuple[Lint, ...] = field(default=())

    @property
    def changed(self) -> bool:
        """Whether a revision was written."""
        return self.revision is not None


@dataclass(slots=True, kw_only=True)
class _Write:
    """An open transaction; ``pk`` is None until a new cluster is stored."""

    cluster: Cluster
    pk: int | None
    number: int
    is_guarded: bool
    changed: bool = False
    written: dict[Key, str] = field(default_factory=dict)

    def is_of(self, cluster: Cluster) -> bool:
        return cluster is self.cluster or (cluster.pk is not None and cluster.pk == self.pk)


class _ThreadState(threading.local):
    """The open writes of this thread, which has a database connection of its own."""

    def __init__(self) -> None:
        self.writes: list[_Write] = []
        self.in_bulk = False


_thread = _ThreadState()
followers: Final[list[Callable[[Cluster, Mapping[Key, str]], None]]] = []
"""Called before a write ends, with the objects written, each with its user, but for those that a
namespace class wrote: what follows from them belongs to the same transaction."""
guards: Final[list[Callable[[Cluster, int, Mapping[Key, str]], None]]] = []
"""Called before the followers of a guarded write, with its number and the same objects; what one
of them raises refuses the whole write."""


@contextmanager
def policy_write(cluster: Cluster, *, is_guarded: bool = True) -> Iterator[None]:
    """Write policies of a cluster: one writer at a time, all or nothing, one revision number.

    A write inside another one of the same cluster joins it. Lock the ledger's rows inside, never
    after. Raises what ``guards`` raise, unless it is not guarded: a change set has met the rules of
    approval before. Raises ``DoesNotExist`` for a cluster that is deleted.
    """
    with transaction.atomic():
        if any(write.is_of(cluster) for write in _thread.writes):
            yield
            return
        write = _begin_write(cluster, is_guarded=is_guarded)
        _thread.writes.append(write)
        try:
            yield
            # The cluster's row comes last: decisions hold it while they commit, and must not wait
            # for a long import. A transaction that will be rolled back counts nothing.
            if write.changed and not connection.needs_rollback:
                _ask_guards(write)
                _let_follow(write)
                _count_revision(write)
        finally:
            _thread.writes.remove(write)


def _ask_guards(write: _Write) -> None:
    if write.written and write.is_guarded:
        for guard in guards:
            guard(write.cluster, write.number, write.written)


def _let_follow(write: _Write) -> None:
    while write.written:
        written, write.written = write.written, {}
        for follow in followers:
            follow(write.cluster, written)


def lock_used(cluster: Cluster, namespaces: Collection[str] | None = None) -> None:
    """Lock the used amounts of the quotas of some namespaces (None: all), in id order.

    Call it before the first of many policies is written: decisions lock in id order too, and
    namespace after namespace would be another order, which can deadlock.
    """
    used_rows = QuotaUsage.objects.filter(cluster=cluster)
    if namespaces is not None:
        used_rows = used_rows.filter(namespace__in=namespaces)
    list(used_rows.order_by("quota_id").select_for_update(no_key=True).values_list("quota_id"))


def _begin_write(cluster: Cluster, *, is_guarded: bool) -> _Write:
    if cluster.pk is None:
        # Behind an earlier cluster of this name, whose history stays: numbers tell what came later.
        earlier = PolicyRevision.objects.filter(cluster=cluster.name).aggregate(
            last=Max("cluster_revision", default=0)
        )
        number = earlier["last"] + 1
        return _Write(cluster=cluster, pk=None, number=number, is_guarded=is_guarded)
    if connection.vendor == "postgresql":
        # An advisory lock and not the row's: writers queue, and decisions still read the row.
        # Both its halves are 32-bit numbers with a sign.
        with connection.cursor() as cursor:
            cursor.execute(_LOCK_SQL, [_WRITE_LOCK, cluster.pk % 2**31])
    stored_revision = Cluster.objects.values_list("policy_revision", flat=True).get(pk=cluster.pk)
    number = stored_revision + 1
    return _Write(cluster=cluster, pk=cluster.pk, number=number, is_guarded=is_guarded)


def _count_revision(counted_write: _Write) -> None:
    """Set the cluster's revision, and notify all processes; PostgreSQL delivers at the commit."""
    pk = counted_write.pk or counted_write.cluster.pk
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if is_postgresql:
            # Decisions share the lock of the row: the gate keeps them from starving this update.
            cursor.execute(_LOCK_SQL, [snapshot.REVISION_GATE, pk % 2**31])
        Cluster.objects.filter(pk=pk).update(policy_revision=counted_write.number)
        if is_postgresql:
            cursor.execute("SELECT pg_notify(%s, %s)", [snapshot.CHANNEL, str(pk)])


def stored_version(instance: Recorded) -> Any:
    """Read the stored object again; None for a new one."""
    model = type(instance)
    return model.objects.filter(pk=instance.pk).first() if instance.pk else None


def check_fresh(stored: Recorded | None, expected: int | None) -> None:
    """Refuse a write that was based on another revision."""
    stored_revision = stored.revision if stored else 0
    if expected is not None and expected != stored_revision:
        raise StaleRevisionError(expected=expected, found=stored_revision)


def check_identity(stored: Recorded | None, instance: Recorded) -> None:
    """Refuse to rename or move a stored object: its history goes by its name."""
    if stored is None:
        return
    stored_identity = (stored.owner.pk, stored.namespace_name, stored.name)
    if stored_identity != (instance.owner.pk, instance.namespace_name, instance.name):
        path = "name" if isinstance(instance, Cluster) else "metadata.name"
        raise immutable(path, column="name")


def immutable(path: str, *, column: str = "") -> ValidationError:
    """The error of a member that names the object or its place, and differs from what is stored."""
    message = "may not be changed after creation; make a new object and delete this one"
    error = PlacedError(message, code="immutable", path=path, place=("", None, column))
    return as_validation_error([error])


def next_number(instance: Recorded) -> int:
    """The number after the last revision of that name, deleted predecessors included."""
    return _last_revision_number(**_revision_names(instance)) + 1


def _revision_names(instance: Recorded) -> dict[str, str]:
    return {
        "cluster": instance.owner.name,
        "namespace": instance.namespace_name,
        "kind": instance.kind,
        "name": instance.name,
    }


def names_of(instance: Recorded) -> Key:
    """Kind, namespace and name of an object."""
    return instance.kind, instance.namespace_name, instance.name


def _last_revision_number(**names: str) -> int:
    last_number = PolicyRevision.objects.filter(**names).aggregate(last=Max("number"))["last"]
    return last_number or 0


def last_numbers(cluster: Cluster, keys: Collection[Key]) -> dict[Key, int]:
    """The last revision number of each name that ever had one; one query."""
    revision_kinds, namespaces, names = (set(part) for part in zip(*keys, strict=True))
    revisions = PolicyRevision.objects.filter(
        cluster=cluster.name, kind__in=revision_kinds, namespace__in=namespaces, name__in=names
    )
    # The three sets may match further names: the caller looks up only its own.
    numbers = revisions.order_by().values_list("kind", "namespace", "name").annotate(Max("number"))
    return {(kind, namespace, name): last for kind, namespace, name, last in numbers}


def record_objects(
    instances: Sequence[Recorded],
    manifests: Sequence[Mapping[str, Any]],
    author: tuple[str, str],
    *,
    befores: Sequence[Mapping[str, Any]] = (),
) -> list[PolicyRevision]:
    """Record new objects of one cluster in one statement, as ``record_object`` does.

    With ``befores`` they are changed objects.
    """
    owner = instances[0].owner
    user, reason = author
    open_write = changed_write(owner)
    writer = writer_of(user)
    if not writer.manager.startswith(CLASS):
        open_write.written |= {names_of(instance): user for instance in instances}
    note_written(
        owner,
        [
            Written(key=names_of(instance), before=before, after=after, revision=instance.revision)
            for instance, before, after in zip(
                instances, befores or repeat(None, len(instances)), manifests, strict=True
            )
        ],
        user,
    )
    return PolicyRevision.objects.bulk_create(
        PolicyRevision(
            **_revision_names(instance),
            uid=str(instance.uid),
            number=instance.revision,
            action=Action.CREATE if before is None else Action.UPDATE,
            user=user,
            manager=writer.manager,
            commit=writer.commit,
            reason=reason,
            before=before,
            after=after,
            cluster_revision=open_write.number,
        )
        for instance, before, after in zip(
            instances, befores or repeat(None, len(instances)), manifests, strict=True
        )
    )


def changed_write(cluster: Cluster) -> _Write:
    """The open write of a cluster, marked as one that counts."""
    open_write = next(open_write for open_write in _thread.writes if open_write.is_of(cluster))
    open_write.changed = True
    return open_write


def record_object(
    instance: Recorded,
    *,
    action: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    author: tuple[str, str],
) -> PolicyRevision:
    """Record one write of an object, inside ``policy_write``; ``author`` is user and reason."""
    fields = {"uid": str(instance.uid), "action": action, "before": before, "after": after}
    # A save has set its number already; a deletion is one more than the last save.
    number = None if action == Action.DELETE else instance.revision
    revision = record(
        instance.owner, {**_revision_names(instance), **fields}, author=author, number=number
    )
    if not isinstance(instance, Cluster):
        if not writer_of(author[0]).manager.startswith(CLASS):
            changed_write(instance.owner).written[names_of(instance)] = author[0]
        written = Written(
            key=names_of(instance), before=before, after=after, revision=revision.number
        )
        note_written(instance.owner, [written], author[0])
    return revision


def record(
    cluster: Cluster,
    revision_fields: dict[str, Any],
    *,
    author: tuple[str, str],
    number: int | None = None,
) -> PolicyRevision:
    """Write one revision from its fields; without ``number`` it is the next of its name."""
    revision_names = {key: revision_fields[key] for key in ("cluster", "namespace", "kind", "name")}
    user, reason = author
    open_write = changed_write(cluster)
    writer = writer_of(user)
    return PolicyRevision.objects.create(
        **revision_fields,
        manager=writer.manager,
        commit=writer.commit,
        number=_last_revision_number(**revision_names) + 1 if number is None else number,
        cluster_revision=open_write.number,
        user=user,
        reason=reason,
    )


@contextmanager
def in_bulk() -> Iterator[None]:
    """Save many policies: no lints after each, call ``lint`` at the end.

    Django does not ask the database for its constraints beforehand: expect ``IntegrityError``.
    """
    was_in_bulk, _thread.in_bulk = _thread.in_bulk, True
    try:
        yield
    finally:
        _thread.in_bulk = was_in_bulk


def is_in_bulk() -> bool:
    """Whether this thread saves many policies."""
    return _thread.in_bulk


def lint_after(instance: Recorded) -> tuple[Lint, ...]:
    """Lint the namespace of a policy that was just written, unless many are being saved."""
    return () if _thread.in_bulk else lint(instance.owner, instance.namespace_name)


def lint(cluster: Cluster, namespace: str) -> tuple[Lint, ...]:
    """Lint all policies of a namespace together."""
    return lint_all(cluster, [namespace])[namespace]


def lint_all(cluster: Cluster, namespaces: Collection[str]) -> dict[str, tuple[Lint, ...]]:
    """Lint several namespaces; as many queries as for one."""
    class_names = frozenset(
        PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    )
    policy_sets = snapshot.load_many(cluster.name, namespaces)
    return {
        name: lint_namespace(policy_sets[name], priority_classes=class_names) for name in namespaces
    }
