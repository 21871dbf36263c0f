"""The look of the log: chosen columns, the oldest first, groups; kept in the address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from admission.models import AuditEvent, SavedView, Verdict, decision_id, partitions
from admission.record.search import pages as search_pages
from admission.record.search import search
from portal.pages.decisions.groups import GROUPS
from portal.pages.decisions.looks import COLUMNS, COOKIE
from tests import people
from tests.admission.requested import requested

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HERE = "/decisions/"
NUMBERS = iter(range(1, 10**6))
USUAL = ["user", "operation", "duration"]


def put(ago: timedelta = timedelta(minutes=1), **fields: Any) -> AuditEvent:
    """Put a decision of so long ago on record."""
    number = next(NUMBERS)
    at = datetime.now(UTC) - ago
    partitions.ensure(at)
    made = AuditEvent(
        **{
            "id": decision_id.encode(int(at.timestamp() * 1000), number),
            "duration_us": 1500,
            "cluster": "prod",
            "phase": "validate",
            "operation": "CREATE",
            "kind": "Pod",
            "namespace": "team",
            "name": f"p{number}",
            "user": "ada",
            "verdict": Verdict.ALLOWED,
            "code": 200,
            **fields,
        }
    )
    made.save()
    return made


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples so small that a few decisions are many."""
    for name, value in {"SAMPLE": 4, "LOOKED": 6, "DAYS": 2, "MOST_DAYS": 4}.items():
        monkeypatch.setattr(search, name, value)
    monkeypatch.setattr(search_pages, "SIZE", 3)


def shown(reader: Client, query: str = "") -> Any:
    response = reader.get(HERE + query)
    assert response.status_code == 200
    return response


def ids(context: Any) -> list[str]:
    return [row.event.pk for row in context["log"]]


def heads(response: Any) -> list[str]:
    return [name for name, _ in response.context["look"].heads]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("", USUAL),
        ("?columns=duration,cluster", ["cluster", "duration"]),
        ("?columns=&columns=duration&columns=user", ["user", "duration"]),
        ("?columns=", []),
        ("?columns=none", []),
        ("?columns=<b>,user", ["user"]),
    ],
)
def test_the_address_names_the_columns(reader: Client, query: str, columns: list[str]) -> None:
    put()
    response = shown(reader, query)
    assert heads(response) == columns
    page = response.content.decode()
    assert [name for name in COLUMNS if f'<td class="{name} ' in page] == columns


def test_links_and_views_keep_the_look(reader: Client) -> None:
    put()
    put(user="bob")
    look = {"columns": "user", "sort": "time"}
    context = shown(reader, "?columns=user&sort=time").context
    (users,) = [facet for facet in context["facets"] if facet.name == "user"]
    for query in (users.entries[0].query, context["period"].choices[0].query, context["query"]):
        assert look.items() <= QueryDict(query).dict().items()
    answer = reader.get(HERE, {"q": "ns:team", **look})
    assert QueryDict(answer["Location"].partition("?")[2]).dict() == {"namespace": "team", **look}
    reader.post(f"{HERE}views/", {"name": "v", "query": context["query"]})
    assert look.items() <= QueryDict(SavedView.objects.get().query).dict().items()


def test_chosen_columns_are_remembered(reader: Client) -> None:
    put()
    answer = reader.get(f"{HERE}?user=ada&columns=&columns=cluster&remember=1")
    assert answer["Location"] == f"{HERE}?user=ada&columns=cluster"
    assert answer.cookies[COOKIE].value == "cluster"
    assert heads(shown(reader)) == ["cluster"]
    # A link that somebody sent shows its columns once, and changes no preference.
    assert heads(shown(reader, "?columns=user")) == ["user"]
    assert heads(shown(reader)) == ["cluster"]
    reader.get(f"{HERE}?columns=&remember=1")
    assert heads(shown(reader)) == []
    reader.cookies[COOKIE] = "evil.<b>"
    assert heads(shown(reader)) == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("query", ["", "user=ada", "cluster=prod", "cluster=prod&kind=Pod"])
def test_the_oldest_first_leaves_nothing_out(reader: Client, query: str) -> None:
    made = [put(timedelta(days=20) - timedelta(hours=40 * number)).pk for number in range(11)]
    made += [put(timedelta(minutes=9 - number)).pk for number in range(9)]
    place, seen, asked = f"{query}&sort=time", list[str](), set()
    shown(reader, f"?{place}")
    for _ in range(40):
        with CaptureQueriesContext(connection) as queries:
            context = shown(reader, f"?{place}").context
        tallied = 4 if context["is_tallied"] else 0
        asked.add(sum("COUNT(*) FROM (SELECT" not in each["sql"] for each in queries) - tallied)
        seen += ids(context)
        place = context["newer_query"]
        if not place:
            break
    assert seen == made
    assert max(asked) - min(asked) <= 3
    assert way_back(reader, query, context, ids(context)) == made


def way_back(reader: Client, query: str, context: Any, seen: list[str]) -> list[str]:
    """What the pages before this one show, each pressed to from the one after it."""
    for _ in range(40):
        if not (place := context["older_query"]):
            break
        assert "sort=time" in place
        context = shown(reader, f"?{place}").context
        assert context["newer_query"]
        seen = ids(context) + seen
    return seen


@pytest.mark.usefixtures("small")
def test_the_way_back_meets_an_empty_stretch(reader: Client) -> None:
    first = put(timedelta(days=9), user="bob").pk
    for number in range(20):
        put(timedelta(days=8) - timedelta(hours=3 * number))
    last = put(user="bob").pk
    place, pages = "?user=bob&sort=time", 0
    while last not in ids(context := shown(reader, place).context):
        place, pages = f"?{context['newer_query']}", pages + 1
        assert pages < 40
    while first not in ids(context):
        if not context["log"]:
            assert context["continues"] == "Older" or pages == 0
        place, pages = f"?{context['older_query']}", pages - 1
        context = shown(reader, place).context
        assert pages > -40


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("query", ["sort=time&after={}", "sort=time&before={}&after={}"])
@pytest.mark.parametrize("place", ["0" * 16, "6" * 16, "z" * 16, "7z" + "0" * 14])
def test_any_place_of_a_turned_log_can_be_asked_for(reader: Client, query: str, place: str) -> None:
    for _ in range(5):
        put()
    context = shown(reader, "?" + query.format(place, place)).context
    for beside in ("older_query", "newer_query"):
        assert reader.get(f"{HERE}?{context[beside]}").status_code == 200


def test_a_period_is_shown_from_its_beginning(reader: Client) -> None:
    put(timedelta(hours=3))
    made = [put(timedelta(minutes=50 - number)).pk for number in range(3)]
    context = shown(reader, "?last=1h&sort=time").context
    assert ids(context) == made
    assert (context["sample"].is_whole, context["newer_query"]) == (True, "")
    assert ids(shown(reader, f"?{context['turned_query']}").context) == made[::-1]


@pytest.mark.parametrize("query", ["since=x", "since=0001-01-01T00:00", "since=2999-01-01"])
def test_any_period_can_be_turned(reader: Client, query: str) -> None:
    put()
    assert reader.get(f"{HERE}?sort=time&{query}").status_code in {200, 400}


@pytest.mark.usefixtures("small")
def test_groups_are_paged_both_ways(reader: Client) -> None:
    for number in range(9):
        put(timedelta(minutes=number + 1), user=f"u{number}")

    def users(context: Any) -> list[str]:
        return sorted(group.label for group in context["grouped"].groups)

    first = shown(reader, "?group=user").context
    assert (users(first), first["newer_query"]) == (["u0", "u1", "u2", "u3"], "")
    second = shown(reader, f"?{first['older_query']}").context
    assert users(second) == ["u4", "u5", "u6", "u7"]
    assert users(shown(reader, f"?{second['newer_query']}").context) == users(first)


@pytest.mark.parametrize("name", list(GROUPS))
def test_a_group_says_what_its_link_finds(reader: Client, name: str) -> None:
    refused = {"verdict": Verdict.DENIED, "code": 403, "reasons": " MaxConstraint MinConstraint "}
    for number in range(3):
        put(name=f"web-5d9f8c7b6d-x2x4{'zwx'[number]}", policy_names=" LimitRange/team/lr ")
    put(name="web-5d9f8c7b6d-abcde", **refused)
    put(name="api", kind="Service", user="adam", cluster="test")
    put(namespace="", name="n", kind="Namespace", user="bob")
    put(**requested({"object": {"spec": {"priorityClassName": "high"}}}))
    found = shown(reader, f"?group={name}").context["grouped"]
    assert found.number >= 2
    for group in found.groups:
        assert sum(number for _, number in group.verdicts) == group.number
        if group.query:
            context = shown(reader, f"?{group.query}").context
            assert context["number"].number == group.number
    numbers = [group.number for group in found.groups]
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize(
    ("typed", "field", "told"),
    [
        ("since:2026-11-20T14:00", "since", "2026-11-20T13:00"),
        ('until:"2026-07-20 14:00"', "until", "2026-07-20T12:00"),
        ("since:2026-11-20", "since", "2026-11-19T23:00"),
        ("since:2026-11-20T14:00:05", "since", "2026-11-20T13:00:05"),
        ("since:2026-11-20T14:00Z", "since", "2026-11-20T14:00Z"),
        ("since:soon", "since", "soon"),
        ("since:0001-01-01T00:00", "since", "0001-01-01T00:00"),
    ],
)
def test_typed_times_are_of_the_readers_zone(
    reader: Client, typed: str, field: str, told: str
) -> None:
    reader.cookies["zone"] = "Europe/Berlin"
    answer = reader.get(HERE, {"q": typed})
    query = QueryDict(answer["Location"].partition("?")[2])
    assert query.dict() == {field: told}
    if told.endswith(":00") and not typed.endswith(told):
        # What the bar shows then says the same again.
        bar = shown(reader, f"?{query.urlencode()}").context["bar"]
        assert reader.get(HERE, {"q": bar})["Location"] == answer["Location"]


def test_words_for_days_and_the_picker_are_of_the_readers_zone(reader: Client) -> None:
    zone = ZoneInfo("Pacific/Auckland")
    reader.cookies["zone"] = zone.key
    days = {datetime.now(zone).date()}
    answer = reader.get(HERE, {"q": "since:today"})
    days.add(datetime.now(zone).date())  # the day may change meanwhile
    since = QueryDict(answer["Location"].partition("?")[2])["since"]
    begin = datetime.fromisoformat(since).replace(tzinfo=UTC).astimezone(zone)
    assert (begin.date() in days, begin.hour, begin.minute) == (True, 0, 0)
    answer = reader.get(f"{HERE}?since=2026-11-20T14:00&local=1&user=ada")
    told = QueryDict(answer["Location"].partition("?")[2]).dict()
    assert told == {"user": "ada", "since": "2026-11-20T01:00"}
    context = shown(reader, "?since=2026-11-20T01:00").context
    assert context["period"].label == "Since 20 Nov 14:00"
    assert context["spans"]["since"] == "2026-11-20T14:00"


@pytest.mark.usefixtures("small")
def test_groups_say_among_how_many_they_were_counted(reader: Client) -> None:
    for number in range(6):
        put(user=f"u{number % 2}")
    response = shown(reader, "?group=user")
    assert sum(group.number for group in response.context["grouped"].groups) == 4
    assert "counted among the newest 4" in response.content.decode()
    older = shown(reader, f"?{response.context['older_query']}").context
    assert sum(group.number for group in older["grouped"].groups) == 2
    assert QueryDict(response.context["older_query"])["group"] == "user"


def test_an_unknown_group_is_none(reader: Client) -> None:
    put()
    assert shown(reader, "?group=name&sort=size").context["grouped"] is None
