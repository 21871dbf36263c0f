"""The journal of the ledger: ``replay`` to used amounts over time, ``led_to``, ``forget``."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction

from engine.quantity import ZERO
from engine.resource_list import add, parse, remove_zeros, subtract
from policies.models import LedgerEntry

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from django.db.backends.utils import CursorWrapper
    from django.db.models import Q

    from engine.resource_list import ResourceList
    from policies.models.ledger_entry import LedgerEntryQuerySet

_TABLE: Final = LedgerEntry._meta.db_table  # noqa: SLF001 - Django documents no other way
_BATCH: Final = 5000  # rows removed in one transaction
_SEARCHED: Final = 2000  # entries of a quota, to explain a difference
SHOWN: Final = 10
"""The entries that explain a difference where nothing says from which on it began."""


@dataclass(frozen=True, slots=True)
class UsedAt:
    """What the charges of a quota sum up to from one entry on; names without usage are left out."""

    entry: int
    created: dt.datetime
    used: ResourceList


def replay(
    entries: Iterable[LedgerEntry], *, start: Mapping[UUID, ResourceList] | None = None
) -> dict[UUID, list[UsedAt]]:
    """Compute from entries, in the order of their ids, what each quota used from when on.

    ``start`` is what was used before the first entry, by quota uid: nothing, where the entries are
    complete; else ``start_of``. Names are those of the charges, whether or not the quota's ``hard``
    had them then. Pure: reads and changes nothing else.
    """
    totals: dict[UUID, ResourceList] = dict(start or {})
    used_over_time: dict[UUID, list[UsedAt]] = defaultdict(list)
    for entry in entries:
        # A recount corrects ``used``: the charges, which are summed up here, were right.
        if entry.action != LedgerEntry.Action.RECOUNT:
            total = remove_zeros(add(totals.get(entry.quota_uid, {}), growth_of(entry)))
            totals[entry.quota_uid] = total
            moment = UsedAt(entry.pk, entry.created, total)
            used_over_time[entry.quota_uid].append(moment)
    return dict(used_over_time)


def start_of(
    entries: Iterable[LedgerEntry], end: Mapping[UUID, ResourceList]
) -> dict[UUID, ResourceList]:
    """What was used before the first of some entries, by what is used after the last of them."""
    totals: dict[UUID, ResourceList] = dict(end)
    for entry in entries:
        if entry.action != LedgerEntry.Action.RECOUNT:
            total = subtract(totals.get(entry.quota_uid, {}), growth_of(entry))
            totals[entry.quota_uid] = remove_zeros(total)
    return totals


def growth_of(entry: LedgerEntry) -> ResourceList:
    """By how much an entry changed what the quota uses; smaller amounts are negative."""
    return remove_zeros(subtract(parse(entry.after), parse(entry.before)))


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """An entry in plain texts, for people and machines; ``created`` as ISO 8601."""

    id: int
    created: str
    action: str
    resource: str
    object_uid: str
    object_name: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    cause: str
    reference: str

    def __str__(self) -> str:
        named = f"{self.resource} {self.object_name or self.object_uid}".strip()
        by = f", {self.reference}" if self.reference else ""
        change = f"{_amounts_text(self.before)} -> {_amounts_text(self.after)}"
        return f"{self.created} {self.action} {named}: {change} ({self.cause}{by})"


def line_of(entry: LedgerEntry) -> JournalLine:
    """An entry in plain texts."""
    return JournalLine(
        id=entry.pk,
        created=entry.created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        action=entry.action,
        resource=entry.resource,
        object_uid=entry.object_uid,
        object_name=entry.object_name,
        before=entry.before,
        after=entry.after,
        cause=entry.cause,
        reference=entry.reference,
    )


def _amounts_text(amounts: Mapping[str, str]) -> str:
    return " ".join(f"{name}={amount}" for name, amount in sorted(amounts.items())) or "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """The newest entries that moved a name of a quota, newest first, if ``used`` is not their sum.

    ``is_explained``: without these entries the charges sum up to ``used``, so it lacks just them.
    """

    entries: Sequence[JournalLine] = ()
    is_explained: bool = False


def led_to(
    cluster_id: int, quota_uid: UUID, resource: str, *, used: str, charged: str
) -> Discrepancy:
    """Find the entries that explain why ``used`` of a name is not the sum of its charges."""
    wrong, total = (parse({resource: text or "0"})[resource] for text in (used, charged))
    found: list[JournalLine] = []
    newest = entries_of(cluster_id, quota_uid).exclude(action=LedgerEntry.Action.RECOUNT)
    for entry in newest.order_by("-id")[:_SEARCHED].iterator():
        growth = growth_of(entry).get(resource, ZERO)
        if growth.sign:
            found.append(line_of(entry))
            total = total - growth
            if total == wrong:
                return Discrepancy(entries=found, is_explained=True)
    return Discrepancy(entries=found[:SHOWN])


def entries_of(cluster_id: int, quota_uid: UUID) -> LedgerEntryQuerySet:
    """The entries of one quota."""
    return LedgerEntry.objects.filter(cluster_id=cluster_id, quota_uid=quota_uid)


def forget(before: dt.datetime, *, held: Q | None = None, until: float = float("inf")) -> int:
    """Remove entries older than a moment, but for those that are ``held``; returns how many.

    Each batch is a transaction of its own, until ``time.monotonic()`` reaches ``until``.
    """
    removed, last_id = 0, 0
    while time.monotonic() < until:
        oldest = LedgerEntry.objects.filter(pk__gt=last_id).order_by("pk")
        batch = list(oldest.values_list("pk", "created")[:_BATCH])
        # In the order of their ids they are in that of their times, but for concurrent writers.
        due_ids = [pk for pk, created in batch if created < before]
        if not due_ids:
            break
        last_id = due_ids[-1]
        removed += _remove(due_ids[0], last_id, before, held)
    return removed


@transaction.atomic
def _remove(first_id: int, last_id: int, before: dt.datetime, held: Q | None) -> int:
    due = LedgerEntry.objects.filter(pk__gte=first_id, pk__lte=last_id, created__lt=before)
    if held is not None:
        due = due.exclude(held)
    query, values = due.order_by().values("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        delete_trigger = _allow_removal(cursor)
        cursor.execute(f"DELETE FROM {_TABLE} WHERE id IN ({query})", values)  # noqa: S608 - our own words
        removed = int(cursor.rowcount)
        _forbid_removal(cursor, delete_trigger)
    return removed


def _allow_removal(cursor: CursorWrapper) -> str:
    """Let this transaction remove entries; returns what ``_forbid_removal`` needs."""
    if connection.vendor == "postgresql":
        cursor.execute("SELECT set_config('gatehouse.retention', 'on', true)")
        return ""
    # SQLite cannot disable a trigger: drop it, and create it again from its own text.
    cursor.execute("SELECT sql FROM sqlite_master WHERE name = 'ledgerentry_no_delete'")
    [delete_trigger] = cursor.fetchone() or [""]
    cursor.execute("DROP TRIGGER IF EXISTS ledgerentry_no_delete")
    return str(delete_trigger)


def _forbid_removal(cursor: CursorWrapper, delete_trigger: str) -> None:
    if connection.vendor == "postgresql":
        cursor.execute("SELECT set_config('gatehouse.retention', 'off', true)")
    elif delete_trigger:
        cursor.execute(delete_trigger)
