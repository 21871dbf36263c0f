"""The ledger's SQL for SQLite, without row locks: json_each joined, json_extract, executemany."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connection

from policies.db.deferred import ask
from policies.ledger.rows import (
    STORED_FIELDS,
    FoundCharge,
    UsageRow,
    entry_of_charge,
    json_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from policies.ledger.rows import Key, NewCharge, NewEntry, NewUsage

_USAGE: Final = "SELECT quota_id, cluster_id, quota_uid, namespace, used FROM policies_quotausage"
_CHARGE: Final = """
    SELECT cluster_id, resource, object_uid, quota_uid, object_name, amounts, state"""
_LOCK: Final = f"""{_USAGE}
    WHERE cluster_id IN (SELECT value FROM json_each(%s))
    AND quota_id IN (SELECT value FROM json_each(%s)) ORDER BY quota_id"""  # noqa: S608 - our own words
_LOCK_NAMESPACE: Final = f"{_USAGE} WHERE cluster_id = %s AND namespace = %s ORDER BY quota_id"
# SQLite does not reorder a CROSS JOIN: each object is looked up in the index.
_CHARGES_OF: Final = f"""{_CHARGE} FROM json_each(%s) AS asked CROSS JOIN policies_charge
    WHERE cluster_id = json_extract(asked.value, '$[0]')
    AND resource = json_extract(asked.value, '$[1]')
    AND object_uid = json_extract(asked.value, '$[2]')"""
_CHARGES_BY: Final = f"""{_CHARGE}
    FROM policies_charge JOIN policies_quotausage AS usage USING (cluster_id, quota_uid)
    WHERE cluster_id IN (SELECT value FROM json_each(%s))
    AND usage.quota_id IN (SELECT value FROM json_each(%s))
    AND resource = %s AND object_uid = %s"""  # noqa: S608 - our own words
_COUNT: Final = """SELECT count(*) FROM (
    SELECT DISTINCT resource, object_uid FROM policies_charge
    WHERE cluster_id = %s AND namespace = %s AND state = 'reserved' LIMIT %s)"""
_NOW: Final = "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
_WRITE_USAGE: Final = """
    UPDATE policies_quotausage SET used = %s WHERE cluster_id = %s AND quota_id = %s"""
_WRITE_CHARGE: Final = f"""
    INSERT INTO policies_charge (cluster_id, quota_uid, namespace, resource, object_uid,
        object_name, amounts, state, reserved_at, created, updated)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, {_NOW}, {_NOW}, {_NOW})
    ON CONFLICT (cluster_id, resource, object_uid, quota_uid) DO UPDATE SET
        object_name = excluded.object_name,
        amounts = excluded.amounts,
        reserved_at = CASE state WHEN 'confirmed' THEN reserved_at ELSE excluded.reserved_at END,
        state = CASE state WHEN 'confirmed' THEN state ELSE excluded.state END,
        updated = excluded.updated"""  # noqa: S608 - our own words

_APPEND: Final = f"""
    INSERT INTO policies_ledgerentry (cluster_id, quota_uid, namespace, resource, object_uid,
        object_name, action, before, after, cause, reference, created)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {_NOW})"""  # noqa: S608 - our own words


def lock(
    cluster_ids: Collection[int], quota_ids: Collection[int], *, waits: bool
) -> Callable[[], list[UsageRow]]:
    """Read the rows of those quotas in id order; the transaction has locked the database."""
    del waits
    unlocked_rows = ask(_LOCK, [json_text(list(cluster_ids)), json_text(list(quota_ids))])
    return lambda: [UsageRow(*row) for row in unlocked_rows()]


def lock_namespace(cluster_id: int, namespace: str) -> list[UsageRow]:
    """Read the rows of all quotas of a namespace in id order."""
    return [UsageRow(*row) for row in ask(_LOCK_NAMESPACE, [cluster_id, namespace])()]


def charges_of(objects: Collection[Key]) -> Callable[[], list[FoundCharge]]:
    """Read the charges of some objects, whatever their state."""
    joined_rows = ask(_CHARGES_OF, [json_text(list(objects))])
    return lambda: [FoundCharge(*row) for row in joined_rows()]


def charges_by(
    cluster_ids: Collection[int], quota_ids: Collection[int], resource: str, uid: str
) -> Callable[[], list[FoundCharge]]:
    """Read what each of some quotas is charged for one object."""
    asked_quotas = [json_text(list(cluster_ids)), json_text(list(quota_ids)), resource, uid]
    held_rows = ask(_CHARGES_BY, asked_quotas)
    return lambda: [FoundCharge(*row) for row in held_rows()]


def count_unconfirmed(cluster_id: int, namespace: str, limit: int) -> Callable[[], int]:
    """Count the objects of a namespace that are only reserved, up to ``limit``."""
    counted = ask(_COUNT, [cluster_id, namespace, limit])
    return lambda: int(counted()[0][0])


def write(usage: Sequence[NewUsage], charges: Sequence[NewCharge]) -> None:
    """Write both, and an entry for each charge; a charge is found by its quota and object."""
    with connection.cursor() as cursor:
        if usage:
            cursor.executemany(
                _WRITE_USAGE,
                [(row.used, row.cluster_id, row.quota_id) for row in usage],
            )
        if charges:
            cursor.executemany(_WRITE_CHARGE, [charge[:STORED_FIELDS] for charge in charges])
    append([entry_of_charge(charge) for charge in charges])


def append(entries: Sequence[NewEntry]) -> None:
    """Append entries to the journal."""
    if entries:
        with connection.cursor() as cursor:
            cursor.executemany(_APPEND, entries)
