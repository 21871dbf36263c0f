"""Parts of every write: the cluster's lock, the stale-copy check, revision and notification."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import Max

from policies import snapshot
from policies.lints import Lint, lint_namespace
from policies.models import Cluster, PolicyRevision, PriorityClass, QuotaUsage, Recorded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    Key = tuple[str, str, str]
    """Kind, namespace and name of an object of one cluster."""

Action = PolicyRevision.Action
_LOCK: Final = 0x6761746B
"""Any number that no other advisory lock of this database begins with."""
_LOCK_SQL: Final = "SELECT pg_advisory_xact_lock(%s, %s)"


class StaleRevisionError(Exception):
    """Somebody else wrote the object since it was read."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(
            f"the object was changed meanwhile: revision {expected} was expected, "
            f"it is at {found}; read it again"
        )
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a write did: the object, its revision (None where nothing changed), and hints."""

    instance: Any
    revision: PolicyRevision | None
    lints: tuple[Lint, ...] = field(default=())

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.revision is not None


@dataclass(slots=True, kw_only=True)
class _Write:
    """A transaction under way; ``pk`` is None until a new cluster is stored."""

    cluster: Cluster
    pk: int | None
    number: int
    changed: bool = False

    def is_of(self, cluster: Cluster) -> bool:
        return cluster is self.cluster or (cluster.pk is not None and cluster.pk == self.pk)


class _Thread(threading.local):
    """The writes of this thread, which has a database connection of its own."""

    def __init__(self) -> None:
        self.writes: list[_Write] = []
        self.in_bulk = False


_thread = _Thread()


@contextmanager
def policy_write(cluster: Cluster) -> Iterator[None]:
    """Write policies of a cluster: one writer at a time, all or nothing, counted once.

    A write inside another one of the same cluster joins it. The cluster's own row is touched last
    of all, so that decisions, which hold it while they commit, never wait for a long import. Rows
    that the ledger locks are therefore to be locked inside, never after. Raises ``DoesNotExist``
    for a cluster that is gone.
    """
    with transaction.atomic():
        if any(write.is_of(cluster) for write in _thread.writes):
            yield
            return
        write = _begin(cluster)
        _thread.writes.append(write)
        try:
            yield
            if write.changed and not connection.needs_rollback:
                _count(write)
        finally:
            _thread.writes.remove(write)


def lock_used(cluster: Cluster, namespaces: Collection[str] | None = None) -> None:
    """Lock what the quotas of some namespaces (None: of all) use, all of them in id order.

    A write of many policies does so before its first: decisions lock in that order too, and one
    namespace after the other would be another.
    """
    rows = QuotaUsage.objects.filter(cluster=cluster)
    if namespaces is not None:
        rows = rows.filter(namespace__in=namespaces)
    list(rows.order_by("quota_id").select_for_update(no_key=True).values_list("quota_id"))


def _begin(cluster: Cluster) -> _Write:
    if cluster.pk is None:
        return _Write(cluster=cluster, pk=None, number=1)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_LOCK_SQL, [_LOCK, cluster.pk % 2**31])
    stored = Cluster.objects.values_list("policy_revision", flat=True).get(pk=cluster.pk)
    return _Write(cluster=cluster, pk=cluster.pk, number=stored + 1)


def _count(write: _Write) -> None:
    """Set the cluster's revision; after the commit, notify all processes."""
    pk = write.pk or write.cluster.pk
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if is_postgresql:
            cursor.execute(_LOCK_SQL, [snapshot.REVISION_GATE, pk % 2**31])
        Cluster.objects.filter(pk=pk).update(policy_revision=write.number)
        if is_postgresql:
            cursor.execute("SELECT pg_notify(%s, %s)", [snapshot.CHANNEL, str(pk)])


def stored_version(instance: Recorded) -> Any:
    """Read the object again as it is stored, or None when it is new."""
    model = type(instance)
    return model.objects.filter(pk=instance.pk).first() if instance.pk else None


def check_fresh(stored: Recorded | None, expected: int | None) -> None:
    """Refuse a write that was made looking at another revision."""
    found = stored.revision if stored else 0
    if expected is not None and expected != found:
        raise StaleRevisionError(expected=expected, found=found)


def check_identity(stored: Recorded | None, instance: Recorded) -> None:
    """Refuse to rename or move what exists: its history goes by its name."""
    if stored is None:
        return
    was = (stored.owner.pk, stored.namespace_name, stored.name)
    if was != (instance.owner.pk, instance.namespace_name, instance.name):
        message = "may not be changed after creation; make a new object and delete this one"
        raise ValidationError({"name": ValidationError(message, code="immutable")})


def next_number(instance: Recorded) -> int:
    """Count on from the last revision of that name, deleted predecessors included."""
    return (
        _last_number(
            cluster=instance.owner.name,
            namespace=instance.namespace_name,
            kind=instance.kind,
            name=instance.name,
        )
        + 1
    )


def _last_number(**names: str) -> int:
    found = PolicyRevision.objects.filter(**names).aggregate(last=Max("number"))["last"]
    return found or 0


def last_numbers(cluster: Cluster, keys: Collection[Key]) -> dict[Key, int]:
    """Give the last revision of each name that ever had one; one query."""
    kinds, namespaces, names = (set(part) for part in zip(*keys, strict=True))
    found = PolicyRevision.objects.filter(
        cluster=cluster.name, kind__in=kinds, namespace__in=namespaces, name__in=names
    )
    numbers = found.order_by().values_list("kind", "namespace", "name").annotate(Max("number"))
    return {(kind, namespace, name): last for kind, namespace, name, last in numbers}


def put_all_on_record(
    instances: Sequence[Recorded],
    manifests: Sequence[Mapping[str, Any]],
    author: tuple[str, str],
    *,
    befores: Sequence[Mapping[str, Any]] = (),
) -> list[PolicyRevision]:
    """Write what was made, all of one cluster, in one statement; as ``put_on_record`` does.

    With ``befores`` it was changed.
    """
    owner = instances[0].owner
    user, reason = author
    write = _write_of(owner)
    write.changed = True
    return PolicyRevision.objects.bulk_create(
        PolicyRevision(
            cluster=owner.name,
            namespace=instance.namespace_name,
            kind=instance.kind,
            name=instance.name,
            uid=str(instance.uid),
            number=instance.revision,
            action=Action.CREATE if before is None else Action.UPDATE,
            user=user,
            reason=reason,
            before=before,
            after=after,
            cluster_revision=write.number,
        )
        for instance, before, after in zip(
            instances, befores or repeat(None, len(instances)), manifests, strict=True
        )
    )


def _write_of(cluster: Cluster) -> _Write:
    return next(write for write in _thread.writes if write.is_of(cluster))


def put_on_record(
    instance: Recorded,
    *,
    action: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    author: tuple[str, str],
) -> PolicyRevision:
    """Write the revision, inside ``policy_write``. ``author`` is user and reason."""
    names = {
        "cluster": instance.owner.name,
        "namespace": instance.namespace_name,
        "kind": instance.kind,
        "name": instance.name,
    }
    fields = {"uid": str(instance.uid), "action": action, "before": before, "after": after}
    # Whoever saves has counted already; a deletion is one more than the last save.
    number = None if action == Action.DELETE else instance.revision
    return record(instance.owner, {**names, **fields}, author=author, number=number)


def record(
    cluster: Cluster,
    fields: dict[str, Any],
    *,
    author: tuple[str, str],
    number: int | None = None,
) -> PolicyRevision:
    """Write one revision from its fields; its number is the next of that name, if not given."""
    names = {key: fields[key] for key in ("cluster", "namespace", "kind", "name")}
    user, reason = author
    write = _write_of(cluster)
    write.changed = True
    return PolicyRevision.objects.create(
        **fields,
        number=_last_number(**names) + 1 if number is None else number,
        cluster_revision=write.number,
        user=user,
        reason=reason,
    )


@contextmanager
def in_bulk() -> Iterator[None]:
    """Save many policies: no look at the whole namespace after each, which ``lint`` gives then.

    What the database checks itself is not asked beforehand, so that ``IntegrityError`` may come.
    """
    before, _thread.in_bulk = _thread.in_bulk, True
    try:
        yield
    finally:
        _thread.in_bulk = before


def is_in_bulk() -> bool:
    """Whether this thread saves many at once."""
    return _thread.in_bulk


def lint_after(instance: Recorded) -> tuple[Lint, ...]:
    """Look at the namespace of a policy that was just written, unless that is done later."""
    return () if _thread.in_bulk else lint(instance.owner, instance.namespace_name)


def lint(cluster: Cluster, namespace: str) -> tuple[Lint, ...]:
    """Look at all policies of a namespace together; only hints."""
    return lint_all(cluster, [namespace])[namespace]


def lint_all(cluster: Cluster, namespaces: Collection[str]) -> dict[str, tuple[Lint, ...]]:
    """Look at several namespaces; as many queries as for one."""
    names = PriorityClass.objects.filter(cluster=cluster).values_list("name", flat=True)
    classes = frozenset(names)
    found = snapshot.load_many(cluster.name, namespaces)
    return {name: lint_namespace(found[name], priority_classes=classes) for name in namespaces}
