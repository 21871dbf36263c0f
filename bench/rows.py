"""Rows of a large record: PostgreSQL copies those that are there, or Python makes each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from admission.models import AuditEvent, decision_id, partitions

if TYPE_CHECKING:
    from datetime import date
    from random import Random

DAY: Final = 86_400_000  # milliseconds
STEP: Final = {
    "name": "LimitRangeCheck",
    "outcome": "passed",
    "policy": {"kind": "LimitRange", "namespace": "team", "name": "limits", "revision": 3},
    "numbers": {"limit": "500m", "request": "250m", "enforced": "1"},
}
COLUMNS: Final = tuple(str(field.column) for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001 - Django's own way to ask
# What is new in each copy: a decision id of `ms` and `noise` (32 bits), where `a` is the alphabet.
_NEW: Final = {
    "id": " || ".join(
        [
            *(f"substr(a, ((ms >> {43 - 5 * n}) & 31)::int + 1, 1)" for n in range(9)),
            "substr(a, ((ms & 7) * 4 + (noise >> 30))::int + 1, 1)",
            *(f"substr(a, ((noise >> {25 - 5 * n}) & 31)::int + 1, 1)" for n in range(6)),
        ]
    ),
    "created": "timestamptz 'epoch' + ms * interval '1 millisecond'",
    "request_uid": "uid",
    "object_uid": "uid",
}


def row(milliseconds: int, made: Random, number: int) -> dict[str, Any]:
    """A row as ``admission.record.write.row`` makes it.

    Clusters, namespaces and users are uneven, as they are; one row in twenty is a denial.
    """
    chosen = decision_id.encode(milliseconds, made.getrandbits(32))
    uid = f"{made.getrandbits(128):032x}"
    event = AuditEvent(
        id=chosen,
        created=decision_id.moment(chosen),
        duration_us=1500,
        cluster=f"cluster-{int(100 * made.random() ** 2)}",
        phase="validate",
        request_uid=uid,
        operation="CREATE",
        kind="Pod",
        resource="pods",
        namespace=f"team-{int(2000 * made.random() ** 2)}",
        name=f"app-{int(5000 * made.random())}-{uid[:5]}",
        object_uid=uid,
        user=f"user-{int(3000 * made.random() ** 2)}",
        groups=["system:authenticated"],
        dry_run=number % 50 == 0,
        client="127.0.0.1",
        verdict="allowed" if number % 20 else "denied",
        code=200,
        policy_revision=1,
        trace=[STEP] * 3,
        request={"object": {"kind": "Pod", "metadata": {"labels": {"app": "web"}}, "spec": {}}},
    )
    return {name: getattr(event, name) for name in COLUMNS}


def keep_sample() -> None:
    """Have the rows that are on record now be those that are copied on this connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMP TABLE sample AS"  # noqa: S608 - our own words
            f" SELECT *, row_number() OVER () - 1 AS place FROM {partitions.TABLE}"
        )


def copy_day(day: date, count: int) -> None:
    """A day's partition anew, with so many rows; it gets its indexes as it joins the record."""
    table, first = partitions.name(day), int(partitions.bounds(day)[0].timestamp() * 1000)
    if day in partitions.days():
        partitions.drop(day)
    with connection.cursor() as cursor:
        partitions.create_detached(cursor, table)
        moment = f"floor({DAY / count} * (i - 1))::bigint + {first}"
        cursor.execute(_copy(table, count, moment))
        partitions.attach(cursor, table, day)


def multiply(count: int) -> None:
    """So many copies more, each at the time of its sample."""
    moment = "floor(extract(epoch FROM created) * 1000)::bigint"
    with connection.cursor() as cursor:
        cursor.execute(_copy(partitions.TABLE, count, moment))


def _copy(table: str, count: int, moment: str) -> str:
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    values = ", ".join(_NEW.get(name, f'made."{name}"') for name in COLUMNS)
    return f"""
    INSERT INTO {table} ({columns}) SELECT {values} FROM (
      SELECT sample.*, i, '0123456789abcdefghjkmnpqrstvwxyz'::text AS a, {moment} AS ms,
        floor(random() * 4294967296)::bigint AS noise, gen_random_uuid()::text AS uid
      FROM generate_series(1, {count}) AS i
        JOIN sample ON place = i % (SELECT count(*) FROM sample)
    ) AS made"""  # noqa: S608 - our own words
