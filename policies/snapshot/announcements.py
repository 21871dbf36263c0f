"""Writes of policies and namespaces that passed our webhook, before the cluster shows them.

``ask_to_announce`` stores one and marks its namespace in every process, where a live follower will
see it; ``arrived`` ends those that the follower has taken in. PostgreSQL notifies the other
processes; on SQLite they read the table in turns.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from policies.db.deferred import ask, is_postgresql
from policies.models import Cluster, ClusterFollower, OncomingWrite
from policies.snapshot import marks
from policies.snapshot.followed import YOUNG
from policies.snapshot.marks import Arrival, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from policies.snapshot.values import Snapshot

CHANNEL: Final = "gatehouse_oncoming"
"""PostgreSQL's notifications: ``+ write cluster namespace`` and ``- cluster revision write,…``."""
FORGET_SECONDS: Final = 60
_AT_ONCE: Final = 300  # writes in a notification, which holds 8,000 bytes
_UPDATE, _DELETE = OncomingWrite.Operation.UPDATE, OncomingWrite.Operation.DELETE
_COLUMNS: Final = {
    "kind": 63,
    "namespace": 63,
    "name": 253,
    "operation": 6,
    "object_uid": 64,
    "resource_version": 100,
}
"""The table's columns of text, and the characters that each has room for."""
# One statement, which the writer may send in a transaction of few packets.
_INSERT: Final = f"""
    INSERT INTO {OncomingWrite._meta.db_table} (cluster_id, {", ".join(_COLUMNS)})
    SELECT cluster_id, %s, %s, %s, %s, %s, %s FROM {ClusterFollower._meta.db_table}
    WHERE cluster_id = %s AND heartbeat > {{young}} RETURNING id"""  # noqa: S608, SLF001 - our own names
_NOTIFIED: Final = f"""
    WITH written AS ({{insert}}, cluster_id, namespace)
    SELECT id, pg_notify('{CHANNEL}', '+ ' || id || ' ' || cluster_id || ' ' || namespace)
    FROM written"""  # noqa: S608 - our own names


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as a follower saw it; ``resource_version`` is None once it is deleted.

    ``namespace`` of a Namespace is its own name, or empty. ``is_leaving``: it has a
    ``deletionTimestamp``.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str | None
    is_leaving: bool = False


def ask_to_announce(  # noqa: PLR0913 - the columns of a write
    cluster_id: int,
    *,
    kind: str,
    namespace: str,
    name: str,
    operation: str,
    object_uid: str = "",
    resource_version: str = "",
) -> Callable[[], bool]:
    """Store a write that is under way; the result marks its namespace, once it is stored.

    It is False without a live follower. ``object_uid`` and ``resource_version`` are those before
    the write; of a create, the uid that the object will have, if it is known. Joins an open
    transaction; raises DatabaseError.
    """
    texts = (kind, namespace, name, operation, object_uid, resource_version)
    if not namespace or not all(map(_fits, texts, _COLUMNS.values())):
        return lambda: False  # no API server makes such names: the table has no room for them
    statement = _INSERT.format(young=YOUNG[connection.vendor])
    if is_postgresql():
        statement = _NOTIFIED.format(insert=statement)
    rows = ask(statement, (*texts, cluster_id))

    def is_stored() -> bool:
        written_rows = rows()
        for write_id, *_ in written_rows:
            add = partial(marks.present.add, Place(cluster_id, namespace), write_id)
            # In this process at once: a review may come before the notification does. A pipeline is
            # no transaction of Django's; a mark of one that fails expires.
            if connection.in_atomic_block:
                transaction.on_commit(add)
            else:
                add()
        return bool(written_rows)

    return is_stored


def _fits(text: str, longest: int) -> bool:
    return len(text) <= longest and text.isascii() and text.isprintable()


def arrived(cluster_id: int, seen: Collection[Seen]) -> int:
    """Delete the writes that are past, given what was seen and stored; returns their number.

    Belongs into the transaction that stored the objects, or right after it: those who wait go on
    once they have the policies of that moment.
    """
    under_way = list(OncomingWrite.objects.filter(cluster_id=cluster_id)) if seen else []
    if not under_way:
        return 0
    seen_by_name: dict[tuple[str, str, str], list[Seen]] = defaultdict(list)
    for one in seen:
        seen_by_name[one.kind, one.namespace or one.name, one.name].append(one)
    past_ids = [
        write.pk
        for write in under_way
        if any(
            is_past(write, one)
            for one in seen_by_name.get((write.kind, write.namespace, write.name), ())
        )
    ]
    if past_ids:
        OncomingWrite.objects.filter(pk__in=past_ids).delete()
        _notify_past(cluster_id, past_ids)
    return len(past_ids)


def is_past(write: OncomingWrite, seen: Seen) -> bool:
    """Whether an object was seen as it is after the write, or can never be.

    Sights may lag behind: one of a predecessor of the same name, or of an older resourceVersion,
    says nothing about the write.
    """
    is_same = not (seen.uid and write.object_uid) or seen.uid == write.object_uid
    if seen.resource_version is None or write.operation == OncomingWrite.Operation.CREATE:
        return is_same  # also a create is past once its object was there, and went
    if write.operation == _DELETE and is_same and seen.is_leaving:
        return True
    is_newer = _is_newer(seen.resource_version, write.resource_version)
    return is_newer and (write.operation == _UPDATE or not is_same)


def _is_newer(seen: str, known: str) -> bool:
    """Compare resourceVersions: numbers by size, others (of aggregated servers) by being equal."""
    if seen.isdecimal() and known.isdecimal():
        return int(seen) > int(known)
    return seen != known


def _notify_past(cluster_id: int, past_ids: list[int]) -> None:
    if not is_postgresql():
        return
    revision = Cluster.objects.values_list("policy_revision", flat=True).get(pk=cluster_id)
    with connection.cursor() as cursor:
        for first in range(0, len(past_ids), _AT_ONCE):
            listed = ",".join(map(str, past_ids[first : first + _AT_ONCE]))
            payload = f"- {cluster_id} {revision} {listed}"
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


def forget_old() -> int:
    """Delete writes of more than ``FORGET_SECONDS`` ago, which never arrived."""
    age = Now() - dt.timedelta(seconds=FORGET_SECONDS)
    with transaction.atomic():
        # Others may be deleting some of them: nobody waits for that here.
        unlocked = OncomingWrite.objects.select_for_update(skip_locked=True)
        old_ids = list(unlocked.filter(announced__lt=age).values_list("pk", flat=True))
        return OncomingWrite.objects.filter(pk__in=old_ids).delete()[0]


def hear(payload: str) -> None:
    """Take in a notification of another process, or of this one."""
    sign, *words = payload.split(" ")
    try:
        if sign == "+":
            write_id, cluster_id, namespace = words
            marks.present.add(Place(int(cluster_id), namespace), int(write_id))
        elif sign == "-":
            numbers = [int(word) for word in words[:2]]
            marks.present.arrive(Arrival(int(one), *numbers) for one in words[2].split(","))
    except (ValueError, TypeError, IndexError):
        return  # of another version of the portal


@dataclass(frozen=True, slots=True)
class WritesRead:
    """The marks before the table was read, and its writes: number, place and age in seconds."""

    known_ids: set[int]
    under_way: list[tuple[int, Place, float]]


def read_under_way() -> WritesRead:
    """Read the writes that still deserve a mark. Before policies are: those missing are in them."""
    known_ids = marks.present.ids()
    age: Any = ExpressionWrapper(Now() - F("announced"), output_field=DurationField())
    young = OncomingWrite.objects.annotate(age=age).filter(
        announced__gt=Now() - dt.timedelta(seconds=marks.SECONDS)
    )
    rows = young.values_list("pk", "cluster_id", "namespace", "age")[: marks.MOST]
    under_way = [(pk, Place(cluster, name), age.total_seconds()) for pk, cluster, name, age in rows]
    return WritesRead(known_ids, under_way)


def catch_up(snapshot: Snapshot | None, writes: WritesRead | None) -> None:
    """End the marks that are past in this snapshot, which was read after ``writes`` were."""
    if writes is not None:
        marks.present.replace(writes.known_ids, writes.under_way)
    clusters = snapshot.clusters.values() if snapshot else ()
    marks.present.release({cluster.id: cluster.revision for cluster in clusters})
