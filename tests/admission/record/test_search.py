"""Reading the record: by id, by page at any depth, counted up to a limit; across days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission.admin import RecordPaginator
from admission.models import (
    AuditEvent,
    AuditHold,
    CappedCount,
    audit_event,
    decision_id,
    partitions,
)
from admission.record import write
from admission.record.search import search
from bench.growth import row
from tests.admission.record.conftest import days_ago

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

pytestmark = pytest.mark.django_db
LIST = "/api/v1/decisions/"


@pytest.fixture
def spread(decided: Callable[..., AuditEvent]) -> list[str]:
    """Ids over half a year, newest first, some days apart."""
    ages = (170, 90, 89, 45, 44, 31, 30, 12, 3, 2, 1, 0)
    made = [decided(days_ago(age)) for age in ages for _ in range(2)]
    return [event.id for event in reversed(made)]


def test_an_id_contains_its_time() -> None:
    time = datetime(2026, 11, 21, 7, 13, 9, 250_000, tzinfo=UTC)
    lowest = decision_id.lowest(time)
    assert decision_id.moment(lowest) == time
    assert decision_id.moment(lowest[:10] + "zzzzzz") == time
    assert lowest <= decision_id.encode(int(time.timestamp() * 1000), 7)


@pytest.mark.parametrize(
    "text", ["", "0" * 15, "0" * 17, "i" * 16, "A" * 16, "z" * 16, "0" * 15 + "\n"]
)
def test_what_is_no_id_has_no_time(text: str) -> None:
    assert not decision_id.is_decision_id(text)
    assert not AuditEvent.objects.with_id(text).exists()


def test_the_time_on_record_is_that_of_the_id(decided: Callable[..., AuditEvent]) -> None:
    event = decided(created=datetime(2001, 1, 1, tzinfo=UTC))
    event.refresh_from_db()
    assert event.created == decision_id.moment(event.id)


@pytest.mark.parametrize("milliseconds", [0, 1, 999])
def test_what_the_writer_writes_is_found_by_its_id(milliseconds: int) -> None:
    second = int(datetime.now(UTC).timestamp()) * 1000
    write.write([row(second + milliseconds, Random(1), 1)])  # noqa: S311 - no secrets
    (event,) = AuditEvent.objects.page().events
    assert AuditEvent.objects.with_id(event.id).get() == event
    after = decision_id.encode(second + milliseconds, 2**32 - 1)
    assert AuditEvent.objects.page(before=after).events == (event,)


def test_pages_go_through_all_days(spread: list[str]) -> None:
    found, cursor = [], ""
    for _ in range(8):
        page = AuditEvent.objects.page(before=cursor, size=3)
        found += [event.id for event in page.events]
        cursor = page.older
    assert found == spread
    assert cursor == ""


def test_pages_go_back_through_all_days(spread: list[str]) -> None:
    page = AuditEvent.objects.page(after=spread[-1], size=10)
    assert [event.id for event in page.events] == spread[-11:-1]
    assert page.newer == spread[-11]
    assert page.older == spread[-2]


def test_pages_part_decisions_of_one_millisecond(decided: Callable[..., AuditEvent]) -> None:
    first = decided()
    same = decision_id.moment(first.id)
    milliseconds = int(same.timestamp() * 1000)
    for number in range(1, 6):
        decided(id=decision_id.encode(milliseconds, 1_000 + number), created=same)
    ids = list(AuditEvent.objects.newest_first().values_list("id", flat=True))
    page, seen = AuditEvent.objects.page(size=2), list[str]()
    while page.events:
        seen += [event.id for event in page.events]
        page = AuditEvent.objects.page(before=seen[-1], size=2)
    assert (seen, len(seen)) == (ids, 6)


def test_a_page_near_the_top_asks_a_few_days_only(spread: list[str]) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        AuditEvent.objects.page(size=2)
    questions = [q["sql"] for q in asked if "pg_inherits" not in q["sql"]]
    assert len(questions) == 1
    oldest = partitions.bounds(days_ago(1))[0]
    assert connection.vendor == "sqlite" or f"{oldest:%Y-%m-%d}" in questions[0]


def test_counts_stop_at_the_limit(spread: list[str]) -> None:
    assert AuditEvent.objects.capped_count() == CappedCount(24)
    assert str(AuditEvent.objects.capped_count(10)) == "10+"
    assert str(CappedCount(10_000, is_capped=True)) == "10,000+"
    assert AuditEvent.objects.for_cluster("nobody").capped_count().number == 0


@pytest.mark.parametrize(
    ("beginning", "found"), [("we", ["web", "we%b"]), ("we%", ["we%b"]), ("W", []), ("web1", [])]
)
def test_names_begin_exactly_so(
    decided: Callable[..., AuditEvent], beginning: str, found: list[str]
) -> None:
    for name in ("we%b", "web", "awe"):
        decided(name=name, user=name)
    rows = AuditEvent.objects.newest_first()
    assert [event.name for event in rows.name_begins(beginning)] == found
    assert [event.user for event in rows.user_begins(beginning)] == found


def test_the_api_pages_through_all_days_and_back(admin_client: Client, spread: list[str]) -> None:
    found, address = [], f"{LIST}?limit=7"
    while address:
        page = admin_client.get(address).json()
        found += [entry["id"] for entry in page["results"]]
        last, address = page, page["next"]
    assert found == spread
    back = admin_client.get(last["previous"]).json()
    assert [entry["id"] for entry in back["results"]] == spread[14:21]


@pytest.mark.parametrize("cursor", ["x", "<", "<0", ">iiiiiiiiiiiiiiii", "0" * 16])
def test_the_api_refuses_an_invented_cursor(admin_client: Client, cursor: str) -> None:
    assert admin_client.get(LIST, {"cursor": cursor}).status_code == 400


@pytest.mark.parametrize(("limit", "size"), [("2", 2), ("500", 24)])
def test_the_api_takes_a_limit(
    admin_client: Client, spread: list[str], limit: str, size: int
) -> None:
    assert len(admin_client.get(LIST, {"limit": limit}).json()["results"]) == size


def statements(client: Client, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return [q["sql"] for q in asked if '"admission_auditevent"' in q["sql"]]


@pytest.mark.parametrize(
    "address",
    ["/decisions/", LIST, "/admin/admission/auditevent/", "/admin/admission/auditevent/?p=2"],
)
def test_lists_neither_skip_rows_nor_count_all(
    admin_client: Client, decided: Callable[..., AuditEvent], address: str
) -> None:
    for _ in range(120):
        decided()
    for sql in statements(admin_client, address):
        assert "OFFSET" not in sql
        assert "LIMIT" in sql or '"id" IN (' in sql


def test_the_admin_pages(admin_client: Client, decided: Callable[..., AuditEvent]) -> None:
    ids = [decided().id for _ in range(120)][::-1]
    rows = RecordPaginator(AuditEvent.objects.all(), 50)
    pages = [[event.id for event in rows.page(number)] for number in rows.page_range]
    assert pages == [ids[:50], ids[50:100], ids[100:]]
    assert "120 decisions" in admin_client.get("/admin/admission/auditevent/").content.decode()


@pytest.mark.parametrize("which", ["id", "request_uid", "name"])
def test_the_admin_searches_what_has_an_index(
    admin_client: Client, decided: Callable[..., AuditEvent], which: str
) -> None:
    decided(name="other")
    uid = "0b6c3cb3-5d4c-4c5e-8d6d-000000000001"
    wanted: Any = decided(name="wanted", request_uid=uid)
    found = admin_client.get("/admin/admission/auditevent/", {"q": getattr(wanted, which)})
    page = found.content.decode()
    assert wanted.id in page
    assert ">other<" not in page


def test_the_admin_makes_and_releases_holds(admin_client: Client) -> None:
    address = "/admin/admission/audithold/"
    fields = {"cluster": "demo", "first_day": "2026-01-02", "reason": "a case"}
    wrong = admin_client.post(f"{address}add/", {**fields, "last_day": "2026-01-01"})
    assert "before the first" in wrong.content.decode()
    assert admin_client.post(f"{address}add/", fields).status_code == 302
    (hold,) = AuditHold.objects.all()
    assert (hold.created_by, hold.released) == ("admin", None)
    admin_client.post(address, {"action": "release", "_selected_action": [hold.pk]})
    (hold,) = AuditHold.objects.all()
    assert hold.released_by == "admin"
    assert admin_client.post(f"{address}{hold.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin_client.post(f"{address}{hold.pk}/change/", fields).status_code == 403


@pytest.mark.parametrize("model", ["auditexport", "retentionrun", "audithold"])
def test_the_admin_lists_what_became_of_the_record(admin_client: Client, model: str) -> None:
    assert admin_client.get(f"/admin/admission/{model}/").status_code == 200


def test_a_search_that_takes_long_stops_and_leads_on(
    spread: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_event, "SEARCH_SECONDS", -1.0)
    first = AuditEvent.objects.page(size=50)
    if connection.vendor == "sqlite":
        assert first.searched_to is None
        return
    assert [event.id for event in first.events] == spread[:4]
    found, page = [event.id for event in first.events], first
    while page.older:
        assert page.searched_to == decision_id.moment(page.older)
        page = AuditEvent.objects.page(before=page.older, size=50)
        found += [event.id for event in page.events]
    assert found == spread
    back = AuditEvent.objects.page(after=spread[-1], size=50)
    assert back.searched_to
    again = AuditEvent.objects.page(after=back.newer, size=50)
    assert {event.id for event in again.events} & set(spread)
    assert not {event.id for event in again.events} & {event.id for event in back.events}


@pytest.mark.parametrize("days", [0, 1, 2, 3, 40, 400])
@pytest.mark.parametrize("start", [0, 1, 5, 39, 500])
def test_stretches_meet_and_cover_all(days: int, start: int) -> None:
    known = [days_ago(number) for number in range(days, 0, -1)]
    day = days_ago(start)
    back = list(partitions.stretches_backward(known, start=day))
    ahead = list(partitions.stretches_forward(known, start=day))
    assert (back[0][1], back[-1][0]) == (ahead[0][0], ahead[-1][1]) == (None, None)
    assert all(later[0] == earlier[1] for later, earlier in pairwise(back))
    assert all(earlier[1] == later[0] for earlier, later in pairwise(ahead))
    assert all(
        end - begin <= timedelta(days=partitions.LONGEST_STRETCH)
        for begin, end in back
        if begin and end
    )


def test_stretches_since_a_moment_end_with_its_own(spread: list[str]) -> None:
    known = [days_ago(number) for number in range(40, 0, -1)]
    since = partitions.bounds(days_ago(9))[0]
    back = list(partitions.stretches_backward(known, start=days_ago(0), since=since))
    begins = [begin for begin, _ in back if begin]
    assert begins[-1] <= since < begins[-2]
    newest = AuditEvent.objects.newest(len(spread), since=decision_id.moment(spread[2]))
    assert [event.id for event in newest] == spread[:3]


def test_the_page_reports_how_far_a_search_came(
    admin_client: Client, spread: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_DAYS", 2)
    page = admin_client.get("/decisions/?cluster=nobody").content.decode()
    told = "No decision matches" if connection.vendor == "sqlite" else "Nothing found yet"
    assert told in page


@pytest.mark.parametrize("size", [1, 2, 3, 5, 30])
def test_a_name_is_found_on_the_days_that_have_it(
    decided: Callable[..., AuditEvent], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(search, "SAMPLE", size)
    wanted = []
    for age in (29, 28, 21, 20, 6, 0):
        decided(days_ago(age), name="other")
        if age not in {20, 6}:
            wanted += [decided(days_ago(age), name=f"web-{number}").id for number in range(2)]
    seen: list[str] = []
    before = ""
    while True:
        sample = search.Search({"name": "web"}, AuditEvent.objects.all()).sample(before)
        assert len(sample.rows) == min(size, len(wanted) - len(seen))
        seen += [row.id for row in sample.rows]
        if not (before := sample.older):
            break
    assert seen == wanted[::-1]


def test_an_extent_has_the_number_of_all_days_and_the_oldest(
    spread: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = search.Search({"kind": "Pod"}, AuditEvent.objects.all())
    assert found.extent() == (CappedCount(24), decision_id.moment(spread[-1]))
    monkeypatch.setattr(search, "SAMPLE", 23)
    assert found.extent() == (CappedCount(24), None)
    monkeypatch.setattr(search, "COUNT_LIMIT", 3)
    with CaptureQueriesContext(connection) as asked:
        assert found.extent() == (CappedCount(3, is_capped=True), None)
    assert len(asked) == 1


def test_an_extent_stops_where_it_takes_long(
    spread: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SEARCH_SECONDS", -1.0)
    number, oldest = search.Search({"kind": "Pod"}, AuditEvent.objects.all()).extent()
    if connection.vendor == "sqlite":
        assert (number, oldest) == (CappedCount(24), decision_id.moment(spread[-1]))
    else:
        assert (number, oldest) == (CappedCount(4, is_capped=True), None)


def test_an_extent_of_nothing_has_no_oldest(spread: list[str]) -> None:
    found = search.Search({"kind": "Pod", "reason": "none"}, AuditEvent.objects.all())
    assert found.extent() == (CappedCount(0), None)
