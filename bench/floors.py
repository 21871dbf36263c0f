"""What the database itself allows: raw statements, one transaction for each review, no product.

`insert` is one row of the record and a commit. `per_request` is the whole charge as one writes it
in SQL: lock the used amount, update it, insert charge and row, commit.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import psycopg

from admission.models.decision_id import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHARGE: Final = (
    "cluster_id quota_uid namespace resource object_uid object_name amounts state"
    " reserved_at created updated"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One row of the record as the product wrote it, as texts, and where its charge belongs.

    ``quotas`` has id, uid and namespace of each quota that may be charged.
    """

    kind: str
    address: str
    cluster: int
    row: Mapping[str, str | None]
    quotas: Sequence[tuple[int, str, str]]
    amounts: str


class Floor:
    """One connection and its statements; a thread has one of its own."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.is_postgresql = pattern.kind == "postgresql"
        mark = "%s" if self.is_postgresql else "?"
        self.connection = self._connect()
        self.row = dict(pattern.row)
        names = ", ".join(f'"{name}"' for name in self.row)
        marks = ", ".join(mark for _ in self.row)
        self.insert_row = f"INSERT INTO admission_auditevent ({names}) VALUES ({marks})"  # noqa: S608 - our own words
        marks = ", ".join(mark for _ in CHARGE)
        self.insert_charge = f"INSERT INTO policies_charge ({', '.join(CHARGE)}) VALUES ({marks})"  # noqa: S608 - our own words
        lock = " FOR NO KEY UPDATE" if self.is_postgresql else ""
        where = f"WHERE cluster_id = {mark} AND quota_id = {mark}"
        self.lock = f"SELECT used FROM policies_quotausage {where}{lock}"  # noqa: S608 - our own words
        self.update = f"UPDATE policies_quotausage SET used = {mark} {where}"  # noqa: S608 - our own words

    def _connect(self) -> Any:
        if self.is_postgresql:
            return psycopg.connect(self.pattern.address, autocommit=True, prepare_threshold=1)
        path = self.pattern.address.removeprefix("sqlite://")
        connection = sqlite3.connect(
            path.removeprefix("/"), timeout=60, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def insert(self) -> None:
        """One row of the record in a transaction of its own."""
        self.connection.execute(self.insert_row, self._fresh_row(*self._fresh()))

    def per_request(self) -> None:
        """Lock, charge, record, commit."""
        pattern, number = self.pattern, secrets.randbelow(len(self.pattern.quotas))
        quota_id, quota_uid, namespace = pattern.quotas[number]
        moment, identity = self._fresh()
        where = (pattern.cluster, quota_id)
        self.connection.execute("BEGIN" if self.is_postgresql else "BEGIN IMMEDIATE")
        used = self.connection.execute(self.lock, where).fetchone()[0]
        grown = self._grown(used if isinstance(used, dict) else json.loads(used))
        self.connection.execute(self.update, (grown, *where))
        charge = (pattern.cluster, quota_uid, namespace, "pods", identity, "", pattern.amounts)
        times = (self._time(moment),) * 3
        self.connection.execute(self.insert_charge, (*charge, "reserved", *times))
        self.connection.execute(self.insert_row, self._fresh_row(moment, identity))
        self.connection.execute("COMMIT")

    def _grown(self, used: dict[str, str]) -> str:
        """One pod more; the other amounts would cost the same."""
        text = used["pods"]
        thousands = text.endswith("k")
        pods = int(text.removesuffix("k")) * (1000 if thousands else 1) + 1
        return json.dumps({**used, "pods": str(pods)})

    def _fresh(self) -> tuple[int, str]:
        return time.time_ns() // 1_000_000, str(uuid.uuid4())

    def _fresh_row(self, milliseconds: int, identity: str) -> list[str | None]:
        self.row["id"] = encode(milliseconds, secrets.randbits(32))
        self.row["created"] = self._time(milliseconds)
        self.row["request_uid"] = self.row["object_uid"] = identity
        return list(self.row.values())

    def _time(self, milliseconds: int) -> str:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
        return moment.isoformat() if self.is_postgresql else moment.strftime("%F %T.%f")

    def close(self) -> None:
        """Hang up."""
        self.connection.close()
