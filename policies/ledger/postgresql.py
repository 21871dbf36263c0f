"""The ledger's SQL for PostgreSQL: rows locked FOR NO KEY UPDATE, LATERAL, json_to_recordset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from policies.db.deferred import ask, execute
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

_USAGE: Final = "SELECT quota_id, cluster_id, quota_uid::text, namespace, used::text"
_CHARGE: Final = """
    SELECT cluster_id, resource, object_uid, quota_uid::text, object_name, amounts::text, state"""
# PostgreSQL locks rows in sorted order, and reads each again once it has its lock.
_LOCK: Final = f"""{_USAGE} FROM policies_quotausage
    WHERE cluster_id = ANY(%s::bigint[]) AND quota_id = ANY(%s::bigint[])
    ORDER BY quota_id FOR NO KEY UPDATE"""
_LOCK_FREE: Final = f"{_LOCK} SKIP LOCKED"
_LOCK_NAMESPACE: Final = f"""{_USAGE} FROM policies_quotausage
    WHERE cluster_id = %s AND namespace = %s
    ORDER BY quota_id FOR NO KEY UPDATE"""
# OFFSET 0 makes the planner look up the objects one by one in the index: it easily plans a scan
# for the join of a fast growing table with a list of unknown length.
_CHARGES_OF: Final = f"""SELECT found.*
    FROM json_to_recordset(%s::json) AS asked (c bigint, r text, u text)
    CROSS JOIN LATERAL ({_CHARGE} FROM policies_charge
        WHERE cluster_id = asked.c AND resource = asked.r AND object_uid = asked.u
        OFFSET 0) AS found"""  # noqa: S608 - our own words
_CHARGES_BY: Final = f"""{_CHARGE}
    FROM policies_charge JOIN policies_quotausage AS usage USING (cluster_id, quota_uid)
    WHERE usage.cluster_id = ANY(%s::bigint[]) AND usage.quota_id = ANY(%s::bigint[])
    AND resource = %s AND object_uid = %s"""
_COUNT: Final = """SELECT count(*) FROM (
    SELECT DISTINCT resource, object_uid FROM policies_charge
    WHERE cluster_id = %s AND namespace = %s AND state = 'reserved' LIMIT %s) AS waiting"""
# LIMIT gives the planner the number of rows, which it cannot see inside of JSON.
_MOVE: Final = """
    UPDATE policies_quotausage AS stored SET used = new.used
    FROM (SELECT * FROM json_to_recordset(%s::json)
        AS row (cluster bigint, quota bigint, used jsonb) LIMIT %s) AS new
    WHERE stored.cluster_id = new.cluster AND stored.quota_id = new.quota"""
_ENTER: Final = """
    INSERT INTO policies_charge AS stored (cluster_id, quota_uid, namespace, resource, object_uid,
        object_name, amounts, state, reserved_at, created, updated)"""
_NOW: Final = "statement_timestamp(), statement_timestamp(), statement_timestamp()"
# A confirmed charge keeps its state and time: only a reservation has a lease to renew.
_AGAIN: Final = """
    ON CONFLICT (cluster_id, resource, object_uid, quota_uid) DO UPDATE SET
        object_name = excluded.object_name,
        amounts = excluded.amounts,
        state = CASE stored.state WHEN 'confirmed' THEN stored.state ELSE excluded.state END,
        reserved_at = CASE stored.state
            WHEN 'confirmed' THEN stored.reserved_at ELSE excluded.reserved_at END,
        updated = excluded.updated"""
_APPEND: Final = """
    INSERT INTO policies_ledgerentry (cluster_id, quota_uid, namespace, resource, object_uid,
        object_name, action, before, after, cause, reference, created)"""
# What the charges and their entries have in common is sent and read once.
_WRITE: Final = f"""WITH new AS MATERIALIZED (
        SELECT * FROM json_to_recordset(%s::json) AS row (cluster bigint, quota uuid,
            namespace text, resource text, uid text, name text, amounts jsonb, state text,
            before jsonb, action text, cause text, reference text)),
    moved AS ({_MOVE}),
    entered AS ({_ENTER}
        SELECT cluster, quota, namespace, resource, uid, name, amounts, state, {_NOW}
        FROM new {_AGAIN})
    {_APPEND}
    SELECT cluster, quota, namespace, resource, uid, name, action, before, amounts, cause,
        reference, statement_timestamp() FROM new"""  # noqa: S608 - our own words
# A single charge, as of a request that comes alone: plain statements are a quarter less work.
_MOVE_ONE: Final = """
    UPDATE policies_quotausage SET used = %s::jsonb WHERE cluster_id = %s AND quota_id = %s"""
_ENTER_ONE: Final = f"{_ENTER} VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb, %s, {_NOW}) {_AGAIN}"
_APPEND_ONE: Final = f"""{_APPEND} VALUES (%s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s::jsonb,
    %s, %s, statement_timestamp())"""
_APPEND_MANY: Final = f"""{_APPEND}
    SELECT cluster, quota, namespace, resource, uid, name, action, before, after, cause,
        reference, statement_timestamp()
    FROM json_to_recordset(%s::json) AS row (cluster bigint, quota uuid, namespace text,
        resource text, uid text, name text, action text, before jsonb, after jsonb, cause text,
        reference text)"""  # noqa: S608 - our own words
_CHARGE_FIELDS: Final = (
    "cluster",
    "quota",
    "namespace",
    "resource",
    "uid",
    "name",
    "amounts",
    "state",
    "before",
    "action",
    "cause",
    "reference",
)
_JSON_FIELDS: Final = ("amounts", "before", "after")
_ENTRY_FIELDS: Final = (
    "cluster",
    "quota",
    "namespace",
    "resource",
    "uid",
    "name",
    "action",
    "before",
    "after",
    "cause",
    "reference",
)


def lock(
    cluster_ids: Collection[int], quota_ids: Collection[int], *, waits: bool
) -> Callable[[], list[UsageRow]]:
    """Lock the rows of those quotas, or of the unlocked ones, until the transaction ends."""
    # Both in id order, so that two transactions never wait for each other. SKIP LOCKED never waits.
    locked_rows = ask(_LOCK if waits else _LOCK_FREE, [list(cluster_ids), list(quota_ids)])
    return lambda: [UsageRow(*row) for row in locked_rows()]


def lock_namespace(cluster_id: int, namespace: str) -> list[UsageRow]:
    """Lock the rows of all quotas of a namespace in id order."""
    return [UsageRow(*row) for row in ask(_LOCK_NAMESPACE, [cluster_id, namespace])()]


def charges_of(objects: Collection[Key]) -> Callable[[], list[FoundCharge]]:
    """Read the charges of some objects, whatever their state."""
    asked_objects = json_text([{"c": c, "r": r, "u": u} for c, r, u in objects])
    lateral_rows = ask(_CHARGES_OF, [asked_objects])
    return lambda: [FoundCharge(*row) for row in lateral_rows()]


def charges_by(
    cluster_ids: Collection[int], quota_ids: Collection[int], resource: str, uid: str
) -> Callable[[], list[FoundCharge]]:
    """Read what each of some quotas is charged for one object."""
    held_rows = ask(_CHARGES_BY, [list(cluster_ids), list(quota_ids), resource, uid])
    return lambda: [FoundCharge(*row) for row in held_rows()]


def count_unconfirmed(cluster_id: int, namespace: str, limit: int) -> Callable[[], int]:
    """Count the objects of a namespace that are only reserved, up to ``limit``."""
    counted = ask(_COUNT, [cluster_id, namespace, limit])
    return lambda: int(counted()[0][0])


def write(usage: Sequence[NewUsage], charges: Sequence[NewCharge]) -> None:
    """Write both, and an entry for each charge; a charge is found by its quota and object."""
    if len(charges) <= 1:
        execute(_MOVE_ONE, [(used, cluster, quota) for cluster, quota, used in usage])
        execute(_ENTER_ONE, [charge[:STORED_FIELDS] for charge in charges])
        execute(_APPEND_ONE, [entry_of_charge(charge) for charge in charges])
        return
    moved = [{"cluster": c, "quota": q, "used": orjson.Fragment(used)} for c, q, used in usage]
    new_charges = [_as_object(_CHARGE_FIELDS, charge) for charge in charges]
    execute(_WRITE, [[json_text(new_charges), json_text(moved), len(usage)]])


def append(entries: Sequence[NewEntry]) -> None:
    """Append entries to the journal."""
    if entries:
        all_entries = [_as_object(_ENTRY_FIELDS, entry) for entry in entries]
        execute(_APPEND_MANY, [[json_text(all_entries)]])


def _as_object(fields: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """A row as a JSON object, into which its JSON texts are put as they are."""
    return {
        name: orjson.Fragment(value) if name in _JSON_FIELDS else value
        for name, value in zip(fields, row, strict=True)
    }
