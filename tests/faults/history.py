"""Compares the database after a fault with the answers that the callers received.

The model is a sequential ledger: reviews come one after the other, each new object adds its
request if it fits, and nothing else changes a number. The record contains the used amount before
every charge and the added amount, so that the sequence can be reconstructed: each charge must
begin where the one before ended.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import zstandard

from engine.quantity import ZERO, Quantity
from engine.resource_list import add, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import psycopg

    from tests.faults.load import Answer

    Connection = psycopg.Connection[Any]

_OK: Final = 200
_CHARGED: Final = re.compile(r"(\S+) \+ (\S+) of (\S+)")
_EVENTS: Final = """
    SELECT id, request_uid, object_uid, verdict, charges, trace, violations, {document}
    FROM admission_auditevent WHERE phase = 'validate' AND NOT dry_run"""
_HAS_DOCUMENTS: Final = """
    SELECT 1 FROM pg_attribute
    WHERE attrelid = 'admission_auditevent'::regclass AND attname = 'document'"""
_CHARGES: Final = """
    SELECT q.name, c.object_uid, c.amounts FROM policies_charge c
    JOIN policies_resourcequota q ON q.uid = c.quota_uid
    WHERE c.state IN ('reserved', 'confirmed') AND c.object_uid <> 'opening-balance'"""
_HARD: Final = """
    SELECT q.name, r.resource, r.hard FROM policies_resourcequotarow r
    JOIN policies_resourcequota q ON q.id = r.quota_id"""
_USED: Final = """
    SELECT q.name, e.key, e.value FROM policies_quotausage u
    JOIN policies_resourcequota q ON q.id = u.quota_id, jsonb_each_text(u.used::jsonb) e"""
_USED_IN_ROWS: Final = """
    SELECT q.name, r.resource, r.used FROM policies_resourcequotarow r
    JOIN policies_resourcequota q ON q.id = r.quota_id WHERE r.used IS NOT NULL"""

Amounts = dict[str, dict[str, Quantity]]


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the record: the answer, and its charge."""

    id: str
    request_uid: str
    object_uid: str
    verdict: str
    charges: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    violations: list[dict[str, Any]]

    @property
    def allowed(self) -> bool:
        """Whether the object was admitted."""
        return self.verdict != "denied"


@dataclass(frozen=True, slots=True)
class Record:
    """The whole record, and the ledger."""

    events: tuple[Event, ...]
    charges: tuple[tuple[str, str, dict[str, Any]], ...]
    hard: Amounts
    used: Amounts


def read_record(connection: Connection) -> Record:
    """Read it in one snapshot, so that load may continue."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        moved = connection.execute("SELECT to_regclass('policies_quotausage')").fetchone()
        used = _USED if moved and moved[0] else _USED_IN_ROWS
        has_documents = connection.execute(_HAS_DOCUMENTS).fetchone()
        events = _EVENTS.format(document="document" if has_documents else "NULL")
        return Record(
            events=tuple(map(_event, connection.execute(events.encode()))),
            charges=tuple(connection.execute(_CHARGES).fetchall()),
            hard=_amounts(connection.execute(_HARD)),
            used=_amounts(connection.execute(used)),
        )


def _event(row: Sequence[Any]) -> Event:
    *names, charges, trace, violations, document = row
    if document is not None:
        packed = json.loads(zstandard.ZstdDecompressor().decompress(document))
        charges, trace = packed["charges"], packed["trace"]
    # Text; an earlier build, whose records a later one reads, stored them as JSON.
    parts = [
        json.loads(one) if isinstance(one, str) else one for one in (charges, trace, violations)
    ]
    return Event(*names, *parts)


def _amounts(rows: Iterable[Any]) -> Amounts:
    found: Amounts = defaultdict(dict)
    for quota, resource, amount in rows:
        found[quota][resource] = Quantity.parse(str(amount))
    return found


def faults_of(record: Record, answers: Sequence[Answer]) -> list[str]:
    """All inconsistencies, as text; empty if answers, record and ledger agree."""
    return [
        *_untrue_answers(record, answers),
        *_repeated_round_trips(record),
        *_unmatched_charges(record),
        *wrong_sums(record),
        *_breaks_in_the_book(record),
        *_needless_denials(record),
    ]


def _untrue_answers(record: Record, answers: Sequence[Answer]) -> list[str]:
    """Verdicts that callers received and that the record does not contain unchanged."""
    on_record = {event.id: event for event in record.events}
    found = []
    for answer in answers:
        if answer.status != _OK:
            continue
        event, review = on_record.get(answer.decision), answer.review
        answered = (review.uid, review.object_uid, answer.allowed)
        if event is None:
            found.append(f"decision {answer.decision} was answered, but is not on record")
        elif (event.request_uid, event.object_uid, event.allowed) != answered:
            found.append(f"answered {answered} by decision {answer.decision}, on record: {event}")
    return found


def _repeated_round_trips(record: Record) -> list[str]:
    """One round trip has one row, even if a commit was looked up after an unknown outcome."""
    counts = Counter(event.request_uid for event in record.events)
    return [f"{count} rows of request {uid}" for uid, count in counts.items() if count > 1]


def _unmatched_charges(record: Record) -> list[str]:
    """A charge without a record, a record without its charge, or one of another amount."""
    decided: dict[tuple[str, str], dict[str, Quantity]] = {}
    for event in record.events:
        for charge in event.charges if event.allowed else ():
            key = (charge["quota"]["name"], event.object_uid)
            decided[key] = parse(charge["amounts"])
    held = {(quota, uid): parse(amounts) for quota, uid, amounts in record.charges}
    return [
        f"charge of {key}: recorded {_shown(decided.get(key))}, held {_shown(held.get(key))}"
        for key in decided.keys() | held.keys()
        if decided.get(key) != held.get(key)
    ]


def _shown(amounts: dict[str, Quantity] | None) -> str:
    if amounts is None:
        return "nothing"
    return ", ".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))


def wrong_sums(record: Record) -> list[str]:
    """``used`` is the sum of the charges, and no sum exceeds its limit."""
    sums: Amounts = defaultdict(dict)
    for quota, _, amounts in record.charges:
        sums[quota] = add(sums[quota], parse(amounts))
    found = []
    for quota, used in record.used.items():
        for name, amount in used.items():
            charged = sums[quota].get(name, ZERO)
            if amount != charged:
                found.append(f"{quota}: {name} used {amount}, charged {charged}")
            if amount > record.hard[quota][name]:
                found.append(f"{quota}: {name} used {amount} of {record.hard[quota][name]}")
    return found


def _steps(record: Record) -> Iterable[tuple[str, str, Quantity, Quantity]]:
    """Quota, resource, used before and added, for each first charge of an object."""
    seen: set[str] = set()
    for event in sorted(record.events, key=lambda event: event.id):
        if not event.allowed or event.object_uid in seen:
            continue
        seen.add(event.object_uid)
        for step in event.trace:
            for resource, text in step["numbers"].items() if step["outcome"] == "charged" else ():
                found = _CHARGED.fullmatch(text)
                assert found, text
                before, added = map(Quantity.parse, found.group(1, 2))
                yield step["policy"]["name"], resource, before, added


def _breaks_in_the_book(record: Record) -> list[str]:
    """Charges sorted by the used amount before them leave no gap and no overlap."""
    charged = Counter(event.object_uid for event in record.events if event.allowed)
    if any(count > 1 for count in charged.values()):
        return []  # a replay is decided net of its own charge: its position is arbitrary
    book = defaultdict(list)
    for quota, resource, before, added in _steps(record):
        book[quota, resource].append((before, added))
    found = []
    for key, entries in book.items():
        expected = ZERO
        for before, added in sorted(entries):
            if before != expected:
                found.append(f"{key}: a charge on {before} where {expected} was used")
                break
            expected = before + added
    return found


def _needless_denials(record: Record) -> list[str]:
    """No request was refused for which the quota still had room in the end."""
    found = []
    for event in record.events:
        exceeded = [v for v in event.violations if v["reason"] == "ExceededQuota"]
        for violation in exceeded:
            numbers, quota = violation["numbers"], violation["policy"]["name"]
            used = record.used[quota].get(numbers["resource"], ZERO)
            wanted = used + Quantity.parse(numbers["requested"])
            if wanted <= Quantity.parse(numbers["hard"]):
                found.append(f"{event.id}: refused {numbers} by {quota}, which has used {used}")
    return found
