"""The document of a row, and rows that are older than it: every reader reads both the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import orjson
import pytest
from django.db import connection

from admission.models import AuditEvent, Verdict
from admission.models.document import PARTS, pack, unpack
from admission.record import export as record_export
from admission.record import owners
from admission.record.attempts import newest_attempts
from admission.record.filters import AuditEventFilter
from admission.record.owners import Owner
from admission.record.search.search import Search
from admission.replay.recorded import PastDecision
from admission.replay.scope import ReplayScope
from engine.chain import AUTHORITY_STEP
from engine.wire import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

REQUEST: Final = {
    "uid": "u",
    "object": {
        "metadata": {
            "ownerReferences": [{"kind": "StatefulSet", "name": "db", "controller": True}]
        },
        "spec": {"priorityClassName": "high"},
    },
}
NATIVE: Final = [orjson.loads(orjson.dumps(AUTHORITY_STEP))]
WHOLE: Final[dict[str, Any]] = {
    "groups": ["g"],
    "policies": [{"kind": "LimitRange", "namespace": "ns", "name": "lr"}],
    "trace": NATIVE,
    "charges": [{"quota": {"name": "rq"}}],
    "request": REQUEST,
}
OWNER: Final = Owner("StatefulSet", "db")
NEW: Final = {
    **WHOLE,
    "owner_kind": OWNER.kind,
    "owner_name": OWNER.name,
    "priority_class": "high",
    "is_native": True,
}
OLD: Final = {f"old_{part}": value for part, value in WHOLE.items()}


@pytest.fixture(params=[NEW, OLD], ids=["document", "older"])
def row(request: pytest.FixtureRequest, decided: Callable[..., AuditEvent]) -> AuditEvent:
    """A refusal on record, in either form, among two others."""
    decided(name="before")
    refused = decided(name="db-0", verdict=Verdict.DENIED, **request.param)
    decided(name="after", verdict=Verdict.DENIED)
    return refused


def test_what_is_packed_is_unpacked_whether_text_or_value() -> None:
    texts = {part: orjson.dumps(value).decode() for part, value in WHOLE.items()}
    assert pack(texts) == pack(WHOLE)
    assert unpack(pack(texts)) == WHOLE


def test_all_parts_are_one_column(decided: Callable[..., AuditEvent]) -> None:
    event = decided(**NEW)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM admission_auditevent")
        names = [each[0] for each in cursor.description]
        columns = dict(zip(names, cursor.fetchone(), strict=True))
    assert [columns[part] for part in PARTS] == [None] * len(PARTS)
    document = columns["document"]
    assert unpack(bytes(document)) == {part: getattr(event, part) for part in PARTS}


def test_parts_are_read(row: AuditEvent) -> None:
    event = AuditEvent.objects.get(pk=row.pk)
    assert {part: getattr(event, part) for part in PARTS} == WHOLE
    assert owners.of_decision(event) == OWNER


def test_a_row_of_nothing_has_empty_parts(decided: Callable[..., AuditEvent]) -> None:
    event = AuditEvent.objects.get(pk=decided().pk)
    assert (event.groups, event.trace, event.request) == ([], [], {})
    assert owners.of_decision(event) == owners.NOBODY


def test_who_enforced_is_known_of_a_line_and_of_a_whole_row(row: AuditEvent) -> None:
    listed = {event.id: event.authority for event in AuditEvent.objects.listed()}
    assert listed[row.pk] == AuditEvent.objects.get(pk=row.pk).authority == "native"
    assert sorted(listed.values()) == ["native", "portal", "portal"]


def test_lists_show_owner_and_priority_class(row: AuditEvent) -> None:
    search = Search({"priority": "high"}, AuditEvent.objects.all())
    assert [(each.id, each.owner, each.priority) for each in search.sample().rows] == [
        (row.pk, OWNER, "high")
    ]
    assert AuditEventFilter({"priority": "low"}, queryset=AuditEvent.objects.all()).qs.count() == 0


def test_attempts_are_of_their_owner(row: AuditEvent) -> None:
    found = {each.id: each.owner for each in newest_attempts("demo", "ns")}
    assert found[row.pk] == "db"
    assert sorted(found.values()) == ["after", "before", "db"]


def test_a_replay_reads_the_request(row: AuditEvent) -> None:
    now = datetime.now(UTC)
    scope = ReplayScope(cluster="demo", since=now - timedelta(days=1), until=now, ids=(row.pk,))
    event = AuditEvent.objects.get(pk=row.pk)
    assert list(scope.pieces()) == [[PastDecision.of(event)]]
    assert PastDecision.of(event).request == dumps(REQUEST)


def test_an_export_has_the_parts(row: AuditEvent) -> None:
    (piece,) = record_export._pieces(row.created.date(), last_id="")
    lines = {each["id"]: each for each in map(orjson.loads, piece.text.splitlines())}
    assert {part: lines[row.pk][part] for part in PARTS} == WHOLE
