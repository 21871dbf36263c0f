"""The explorer: what it finds and counts, its words, its views and its files."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from admission.models import (
    AuditEvent,
    SavedView,
    Tally,
    Verdict,
    audit_event,
    decision_id,
    partitions,
)
from admission.record.filters import AuditEventFilter
from admission.record.search import pages as search_pages
from admission.record.search import query as search_query
from admission.record.search import search
from admission.record.search.stream import neutral
from tests import people
from tests.admission.requested import requested

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HERE = "/decisions/"
QUESTIONS = 13
"""Those that count a result go back by stretches of days, in bounded time, and are left out."""
TALLIED = 4
FITTING = [
    "", "cluster=prod", "namespace=team", "kind=Pod", "name=web", "user=ada", "verdict=denied",
    "phase=validate", "reason=MaxConstraint", "policy=lr", "dry_run=true", "priority=high",
    "request_uid=one", "last=30d&cluster=prod&kind=Pod", "since=2020-01-01&phase=validate",
    "until=2100-01-01&user=ada", "operation=CREATE", "exclude=user:bob ns:other",
    "cluster=prod&verdict=denied&user=a&reason=MaxConstraint",
]  # fmt: skip
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=1"]
SECONDS = iter(range(1, 10**6))


def put(**fields: Any) -> AuditEvent:
    """Put a decision of a moment ago on record, each a little later than the last."""
    began = int(datetime.now(UTC).timestamp() * 1000) - 1000
    made = AuditEvent(
        **{
            "id": decision_id.encode(began, next(SECONDS)),
            "duration_us": 1,
            "cluster": "prod",
            "phase": "validate",
            "operation": "CREATE",
            "kind": "Pod",
            "namespace": "team",
            "name": "p",
            "user": "ada",
            "verdict": Verdict.ALLOWED,
            "code": 200,
            **fields,
        }
    )
    made.save()
    return made


def refused(reason: str = "MaxConstraint", **fields: Any) -> AuditEvent:
    return put(verdict=Verdict.DENIED, code=403, reasons=f" {reason} ", **fields)


def of_class(name: str) -> dict[str, Any]:
    return requested({"object": {"spec": {"priorityClassName": name}}})


def made_by(owner: str) -> dict[str, Any]:
    reference = {"controller": True, "uid": owner}
    return requested({"object": {"metadata": {"ownerReferences": [reference]}}})


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def shown(reader: Client, query: str = "", address: str = HERE) -> Any:
    response = reader.get(address + query)
    assert response.status_code == 200
    return response


def found(reader: Client, query: str) -> list[str]:
    context = shown(reader, query).context
    return [each.id for row in context["rows"] for each in (row.newest, *row.alike)]


def counts(reader: Client, name: str, query: str = "") -> dict[str, int]:
    context = shown(reader, query).context
    entries = [f.entries for f in context["facets"] if f.name == name]
    return {entry.label: entry.number for each in entries for entry in each}


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ("ns:a verdict:denied user:b", {"namespace": "a", "verdict": "denied", "user": "b"}),
        ("user:system:serviceaccount:a:b", {"user": "system:serviceaccount:a:b"}),
        ('user:"Ada L" web', {"user": "Ada L", "name": "web"}),
        (r'name:"a \"b\" \\ c"', {"name": r'a "b" \ c'}),
        ("dry:yes last:24h ns:", {"dry_run": "true", "last": "24h"}),
        ("namespace:a", {"namespace": "a"}),
        ("op:create", {"operation": "CREATE"}),
        ("ns:a -user:b -user:c", {"namespace": "a", "exclude": "user:b user:c"}),
        ("-namespace:a -dry:yes -op:DELETE", {"exclude": "ns:a dry:yes op:delete"}),
        ('-user:"Ada L" -web', {"exclude": 'user:"Ada L" name:web'}),
        ('-ns:a -ns:a - -ns: -ns:""', {"exclude": "ns:a"}),
        ("", {}),
    ],
)  # fmt: skip
def test_words_become_fields_and_back(typed: str, fields: dict[str, str]) -> None:
    assert search_query.parse(typed) == (fields, [])
    assert search_query.parse(search_query.render(fields)) == (fields, [])


@pytest.mark.parametrize(
    ("typed", "field", "back"),
    [
        ("since:today", "since", 0),
        ("since:yesterday", "since", 1),
        ("until:yesterday", "until", 1),
    ],
)
def test_days_have_names(typed: str, field: str, back: int) -> None:
    asked_from = datetime.now(UTC)
    fields, errors = search_query.parse(typed)
    # The day may change meanwhile.
    days = {moment.date() - timedelta(days=back) for moment in (asked_from, datetime.now(UTC))}
    assert errors == []
    assert fields in [{field: f"{day}T00:00"} for day in days]


@pytest.mark.parametrize(
    ("typed", "length"),
    [
        ("last:2d", timedelta(days=2)),
        ("last:90m", timedelta(minutes=90)),
        ("last:12h", timedelta(hours=12)),
    ],
)
def test_any_length_until_now_is_a_beginning(typed: str, length: timedelta) -> None:
    asked_from = datetime.now(UTC) - timedelta(minutes=1)
    fields, _ = search_query.parse(typed)
    begin = datetime.fromisoformat(fields["since"]).replace(tzinfo=UTC)
    assert fields.keys() == {"since"}
    assert asked_from <= begin + length <= datetime.now(UTC)


@pytest.mark.parametrize("typed", ["last:24h", "last:0d", "last:2w", "last:99999d"])
def test_other_lengths_are_left_to_the_filter(typed: str) -> None:
    assert search_query.parse(typed)[0] == {"last": typed.removeprefix("last:")}


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("-nmspc:team", ("“-nmspc:”", "cluster, ns, kind")),
        ("-since:today", ("“-since:”", "“until:”")),
        ("-last:2d", ("“-last:”", "“until:”")),
    ],
)
def test_what_cannot_be_excluded_is_named_with_a_way_out(
    reader: Client, typed: str, named: tuple[str, str]
) -> None:
    (error,) = reader.get(HERE, {"q": typed}).context["bar_errors"]
    assert all(part in error for part in named)


@pytest.mark.parametrize(
    ("excluded", "code"),
    [
        ("nmspc:team", "unknown_field"),
        ("since:today", "unknown_field"),
        ("verdict:maybe", "unknown_value"),
        ("dry:perhaps", "unknown_value"),
        (" ".join(f"ns:a{number}" for number in range(51)), "too_many_words"),
    ],
)
def test_an_address_that_cannot_exclude_is_refused(
    reader: Client, excluded: str, code: str
) -> None:
    response = reader.get(HERE, {"exclude": excluded})
    assert response.status_code == 400
    assert response.context["form"].errors.as_data()["exclude"][0].code == code
    assert reader.get(f"{HERE}export.csv", {"exclude": excluded}).status_code == 400
    answer = reader.get("/api/v1/decisions/", {"exclude": excluded})
    assert answer.status_code == 400


@pytest.mark.parametrize("typed", ["nmspc:team", "ns:a ns:b", "one two"])
def test_a_word_that_is_not_understood_is_named(reader: Client, typed: str) -> None:
    response = reader.get(HERE, {"q": typed})
    assert response.status_code == 200
    assert len(response.context["bar_errors"]) == 1
    assert 'role="alert"' in response.content.decode()


def test_what_is_typed_becomes_the_address(reader: Client) -> None:
    response = reader.get(HERE, {"q": "ns:team verdict:denied"})
    assert response.status_code == 302
    assert response["Location"] == f"{HERE}?namespace=team&verdict=denied"
    assert shown(reader, "?namespace=team").context["bar"] == "ns:team"


@pytest.mark.parametrize(
    "query",
    [
        "namespace=team", "verdict=denied", "user=ada", "reason=MaxConstraint", "kind=Pod",
        "policy=lr", "priority=high", "dry_run=true", "cluster=prod&user=ada", "last=1h",
        "name=web", "operation=CREATE",
        "exclude=cluster:test", "exclude=ns:x", "exclude=kind:Service", "exclude=name:ap",
        "exclude=user:bo", "exclude=reason:None", "exclude=verdict:would-deny",
        "exclude=policy:none", "exclude=dry:no", "exclude=priority:low", "exclude=uid:two",
        "exclude=phase:mutate", "exclude=op:update", "exclude=ns:y -ns:x",
        "exclude=policy:LimitRange/x/other",
    ],
)  # fmt: skip
def test_each_filter_finds_what_it_says_and_nothing_else(reader: Client, query: str) -> None:
    wanted = refused(
        name="web-1", dry_run=True, **of_class("high"), policy_names=" LimitRange/team/lr "
    )
    other = put(
        id=decision_id.encode(int((datetime.now(UTC) - timedelta(hours=3)).timestamp() * 1000), 1),
        cluster="test", namespace="x", user="bob", kind="Service", name="api", operation="UPDATE",
        reasons=" None ", policy_names=" LimitRange/x/other LimitRange/x/none ", phase="mutate",
        **of_class("low"), request_uid="two",
    )  # fmt: skip
    assert found(reader, f"?{query}") == [wanted.pk]
    assert set(found(reader, "")) == {wanted.pk, other.pk}


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("", 0),
        ("?last=24h&group=owner&sort=time", 0),
        ("?cluster=prod&namespace=a,b&last=24h", 2),
        ("?request_uid=one&since=2020-01-01", 1),
        ("?verdict=denied&exclude=ns:web ns:shop user:bob", 4),
    ],
)
def test_the_button_of_filters_counts_those_in_force_and_not_the_time(
    reader: Client, query: str, number: int
) -> None:
    put()
    assert shown(reader, query).context["filters_chosen"] == number


def test_counts_beside_are_of_what_fits(reader: Client) -> None:
    refused(user="ada")
    refused("MinConstraint", user="bob", **of_class("high"))
    put(user="bob", **of_class("low"))
    assert counts(reader, "user") == {"bob": 2, "ada": 1}
    assert counts(reader, "reason") == {"MaxConstraint": 1, "MinConstraint": 1}
    assert counts(reader, "priority") == {"high": 1, "low": 1}
    assert counts(reader, "user", "?verdict=denied") == {"ada": 1, "bob": 1}
    chosen = [f for f in shown(reader, "?user=ada").context["facets"] if f.name == "user"]
    assert [(e.label, e.is_chosen, e.query) for e in chosen[0].entries] == [("ada", True, "")]


def test_verdicts_are_the_legend_whichever_there_are(reader: Client) -> None:
    refused()
    legend = {"denied": 1, "would deny": 0, "mutated": 0, "allowed": 0}
    assert counts(reader, "verdict") == legend
    verdicts = shown(reader, "?verdict=denied").context["facets"][0]
    assert [each.is_chosen for each in verdicts.entries] == [True, False, False, False]
    assert verdicts.entries[0].query == ""


@pytest.mark.parametrize(
    ("excluded", "name", "label", "rest"),
    [
        ("ns:other", "namespace", "other", ""),
        ("verdict:would-deny user:eve", "verdict", "would deny", "user:eve"),
        ("user:eve ns:other dry:yes", "dry_run", "yes", "user:eve ns:other"),
        ("user:system:serviceaccount:a:b ns:c", "user", "b", "ns:c"),
    ],
)
def test_a_facet_shows_what_is_excluded(
    reader: Client, excluded: str, name: str, label: str, rest: str
) -> None:
    put()
    facets = shown(reader, f"?exclude={excluded}&kind=Pod").context["facets"]
    (found,) = [each for each in facets if each.name == name]
    (entry,) = [each for each in found.entries if each.is_excluded]
    assert (found.is_open, entry.label, entry.is_chosen) == (True, label, False)
    assert QueryDict(entry.query).dict() == {"kind": "Pod"} | ({"exclude": rest} if rest else {})


def test_service_accounts_are_shown_by_their_names(reader: Client) -> None:
    account = "system:serviceaccount:kube-system:job-controller"
    put(user=account)
    put(user="ada")
    context = shown(reader).context
    assert [row.user for row in context["log"]] == ["ada", "job-controller"]
    (users,) = [each for each in context["facets"] if each.name == "user"]
    (entry,) = [each for each in users.entries if each.label == "job-controller"]
    assert entry.title == account
    assert found(reader, f"?{entry.query}") == [context["rows"][1].event.pk]


@pytest.mark.parametrize(
    ("kind", "name", "shown_name"),
    [
        ("Pod", "web-5d9f8c7b6d-x2x4z", "web"),
        ("Pod", "web", "web"),
        ("Job", "nightly-29384930", "nightly"),
        ("ResourceQuota", "team-2024", "team-2024"),
        ("Pod", "", "Pod"),
        ("", "", "unreadable review"),
    ],
)
def test_rows_name_owners(reader: Client, kind: str, name: str, shown_name: str) -> None:
    put(kind=kind, name=name)
    (row,) = shown(reader).context["log"]
    assert row.name == shown_name


def test_counts_of_many_say_of_how_many(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SAMPLE", 3)
    for _ in range(5):
        put()
    context = shown(reader).context
    assert (len(context["sample"].rows), context["sample"].is_whole) == (3, False)
    assert len(context["rows"]) == 3


def test_a_rare_thing_is_looked_for_piece_by_piece(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOKED", 2)
    rare = put(user="rare")
    for _ in range(7):
        put(id=decision_id.encode(int(datetime.now(UTC).timestamp() * 1000) + next(SECONDS), 1))
    query, pages = "user=rare", 0
    while not (ids := found(reader, f"?{query}")):
        query, pages = shown(reader, f"?{query}").context["older_query"], pages + 1
    assert ids == [rare.pk]
    assert pages > 1


def test_pages_at_any_depth_leave_nothing_out(reader: Client) -> None:
    made = [put(name=f"p{number}").pk for number in range(70)]
    for more in ("", "&kind=Pod"):
        query, seen = more, list[str]()
        while query or not seen:
            seen += found(reader, f"?{query}")
            query = shown(reader, f"?{query}").context["older_query"]
        assert seen == made[::-1]


def test_repeated_refusals_of_one_owner_are_one_line(reader: Client) -> None:
    for number in range(4):
        refused(name=f"web-{number}", **made_by("rs-1"))
    refused(**made_by("rs-2"))
    refused("MinConstraint", **made_by("rs-1"))
    put(**made_by("rs-1"))
    rows = shown(reader).context["rows"]
    assert [row.number for row in rows] == [1, 1, 1, 4]
    assert "4 similar since" in shown(reader).content.decode()


@pytest.mark.usefixtures("small")
def test_refusals_are_put_together_across_pages_and_stay_there(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SAMPLE", 20)
    monkeypatch.setattr(search_pages, "SIZE", 2)
    for number in range(4):
        refused(name=f"web-{number}", **made_by("rs-1"))
        put(name=f"p{number}")
    first = shown(reader).context
    assert [row.number for row in first["rows"]] == [1, 4]
    put(name="newer")
    second = shown(reader, f"?{first['older_query']}").context
    third = shown(reader, f"?{second['older_query']}").context
    assert [row.newest.name for row in second["rows"]] == ["p2", "p1"]
    assert [row.newest.name for row in third["rows"]] == ["p0"]
    # Where days are kept from long ago, one may go on looking there.
    assert not third["older_query"] or not shown(reader, f"?{third['older_query']}").context["rows"]
    back = shown(reader, f"?{third['newer_query']}").context
    assert [row.newest.id for row in back["rows"]] == [row.newest.id for row in second["rows"]]


@pytest.mark.usefixtures("small")
def test_newer_pages_lead_back_to_the_newest(reader: Client) -> None:
    put_over_days(13)
    query, seen = shown(reader, "?kind=Pod").context["older_query"], list[str]()
    while deeper := shown(reader, f"?{query}").context["older_query"]:
        query = deeper
    while query:
        context = shown(reader, f"?{query}").context
        seen += [row.newest.id for row in context["rows"]]
        query = context["newer_query"]
    assert set(seen) == set(AuditEvent.objects.values_list("pk", flat=True))


def test_bars_count_all_and_lead_to_their_time(reader: Client) -> None:
    for _ in range(3):
        refused()
    put()
    for query in ("", "?user=ada"):
        context = shown(reader, query).context
        assert sum(bar.denied for bar in context["bars"]) == 3
        columns = json.loads(context["plot"])["columns"]
        assert [sum(column) for column in columns[1:]] == [1, 0, 0, 3]
        (bar,) = [bar for bar in context["bars"] if bar.denied]
        assert len(found(reader, f"?{bar.query}")) == 4


def number_in(context: Any, facet: str, value: str) -> int:
    (found,) = [each for each in context["facets"] if each.name == facet]
    return next((entry.number for entry in found.entries if entry.label == value), 0)


@pytest.mark.parametrize("query", ["", "verdict=would-deny", "verdict=mutated", "last=24h"])
def test_page_facets_plot_and_file_say_one_number(reader: Client, query: str) -> None:
    for verdict in (Verdict.ALLOWED, Verdict.MUTATED, Verdict.MUTATED):
        put(verdict=verdict)
        put(verdict=verdict, reasons=" MaxConstraint ")
    refused()
    context = shown(reader, f"?{query}").context
    file = b"".join(reader.get(f"{HERE}export.csv?{query}").streaming_content)
    rows = list(csv.DictReader(file.decode().splitlines()))
    assert context["number"].number == len(rows) == context["total"]
    for outcome in ("allowed", "mutated", "would-deny", "denied"):
        among = sum(row["verdict"] == outcome for row in rows)
        assert sum(getattr(bar, outcome.replace("-", "_")) for bar in context["bars"]) == among
        if not query:
            assert number_in(context, "verdict", outcome.replace("-", " ")) == among


@pytest.mark.usefixtures("small")
def test_more_than_are_read_at_once_are_counted_all_the_same(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_over_days(30)
    page = shown(reader)
    assert str(page.context["number"]) == "30"
    assert b"<b>30<" in page.content
    assert b"of the newest " in page.content
    older = shown(reader, f"?{page.context['older_query']}")
    assert str(older.context["number"]) == "30"
    monkeypatch.setattr(audit_event, "COUNT_LIMIT", 20)
    capped = shown(reader).content
    assert b"<b>20+<" in capped
    assert (b">exact<" in page.content, b">exact<" in capped) == (True, False)


def test_what_audit_found_is_a_verdict_of_its_own(reader: Client) -> None:
    hit = put(reasons=" MaxConstraint ")
    put()
    refused()
    assert [row.newest.id for row in shown(reader, "?verdict=would-deny").context["rows"]] == [
        hit.pk
    ]
    assert len(shown(reader, "?verdict=allowed").context["rows"]) == 1
    assert b"would deny" in shown(reader).content
    listed = reader.get("/api/v1/decisions/?verdict=would-deny").json()["results"]
    assert [(each["id"], each["verdict"]) for each in listed] == [(hit.pk, "would-deny")]


def test_many_are_counted_by_their_tallies(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SAMPLE", 1)
    put()
    put()
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=30)
    Tally.objects.create(cluster="prod", start=start, allowed=10, denied=5)
    Tally.objects.create(cluster="test", start=start, allowed=100)
    context = shown(reader, "?cluster=prod").context
    assert (context["is_tallied"], context["total"]) == (True, 17)
    assert shown(reader, "?verdict=denied&cluster=prod").context["bars"] is not None


def test_the_tail_gives_what_is_newer_alone(reader: Client) -> None:
    put()
    tail = shown(reader, "?user=ada").context["tail"]
    assert reader.get(f"{HERE}newer/?{tail}").status_code == 204
    newer = put()
    put(user="bob")
    response = shown(reader, f"?{tail}", f"{HERE}newer/")
    assert [row.event.pk for row in response.context["rows"]] == [newer.pk]
    assert f"after={newer.pk}" in response.content.decode()


@pytest.mark.parametrize("query", ["", "?after=%00", "?after=0000000000000000&since=x"])
def test_a_tail_of_nothing_is_empty(reader: Client, query: str) -> None:
    put()
    assert reader.get(f"{HERE}newer/{query}").status_code == 204


def test_a_view_is_kept_shared_and_dropped(reader: Client) -> None:
    kept = {"name": "  Mine ", "query": "verdict=denied&evil=1", "shared": "on"}
    assert reader.post(f"{HERE}views/", kept)["Location"] == f"{HERE}?verdict=denied"
    view = SavedView.objects.get()
    assert (view.name, view.query, view.is_shared) == ("Mine", "verdict=denied", True)
    reader.post(f"{HERE}views/", {"name": "Mine", "query": "user=ada"})
    assert SavedView.objects.get().query == "user=ada"
    assert reader.post(f"{HERE}views/", {"name": " "}).status_code == 302
    assert reader.get(f"{HERE}views/").status_code == 405
    assert reader.post(f"{HERE}views/{view.pk}/drop/").status_code == 302
    assert not SavedView.objects.exists()


def test_views_of_others_are_seen_if_shared_and_not_dropped(reader: Client) -> None:
    owner = people.nobody("owner")
    SavedView.objects.create(owner=owner, name="secret")
    view = SavedView.objects.create(owner=owner, name="ours", is_shared=True)
    assert [each.name for each in shown(reader).context["views"]] == ["ours"]
    assert reader.post(f"{HERE}views/{view.pk}/drop/").status_code == 404


def test_an_admin_drops_shared_views_of_others(client: Client) -> None:
    owner = people.nobody("owner")
    private = SavedView.objects.create(owner=owner, name="secret")
    view = SavedView.objects.create(owner=owner, name="ours", is_shared=True)
    client.force_login(people.person("admin", "admin"))
    assert shown(client).context["kept_views"] == [view]
    assert client.post(f"{HERE}views/{private.pk}/drop/").status_code == 404
    assert client.post(f"{HERE}views/{view.pk}/drop/").status_code == 302
    assert list(SavedView.objects.all()) == [private]


@pytest.mark.parametrize(
    ("query", "is_offered"),
    [
        ("", True), ("verdict=denied", True), ("cluster=prod", True), ("cluster=test", False),
        ("namespace=mine", True), ("namespace=theirs", False),
        ("cluster=prod&namespace=mine", True), ("cluster=test&namespace=mine", False),
        ("cluster=prod&namespace=theirs", False),
        ("policy=LimitRange/mine/lr", True), ("policy=LimitRange/theirs/lr", False),
        ("namespace=mine&policy=LimitRange/theirs/lr", False), ("policy=lr", True),
        ("user=system:serviceaccount:mine:x", True), ("user=system:serviceaccount:the", False),
        ("user=ada", True), ("exclude=ns:mine -ns:theirs", False), ("exclude=ns:mine", True),
        ("exclude=cluster:test", False), ("exclude=cluster:prod", True),
        ("exclude=policy:LimitRange/theirs/lr", False),
    ],
)  # fmt: skip
def test_a_shared_view_tells_no_place_that_is_hidden(
    client: Client, query: str, *, is_offered: bool
) -> None:
    owner = people.person("owner")
    SavedView.objects.create(owner=owner, name="v", query=query, is_shared=True)
    client.force_login(people.person(cluster="prod", namespace="mine"))
    assert bool(shown(client).context["views"]) is is_offered
    client.force_login(owner)
    assert shown(client).context["views"]


@pytest.mark.parametrize("query", ["", "verdict=denied"])
def test_a_shared_view_without_a_place_is_for_those_with_a_role(client: Client, query: str) -> None:
    SavedView.objects.create(owner=people.person("owner"), name="v", query=query, is_shared=True)
    client.force_login(people.nobody())
    assert not shown(client).context["views"]
    assert b">v<" not in shown(client).content


@pytest.mark.parametrize("address", ["", "newer/?after=0000000000000000", "export.jsonl"])
def test_nobody_learns_of_what_they_may_not_see(client: Client, address: str) -> None:
    put(namespace="mine")
    put(namespace="theirs")
    put(namespace="mine", cluster="theirs")
    put(namespace="", cluster="prod", kind="theirs")
    client.force_login(people.person(cluster="prod", namespace="mine"))
    response = client.get(HERE + address)
    page = b"".join(response) if response.streaming else response.content
    assert b"mine" in page
    assert b"theirs" not in page


def test_who_has_no_role_is_told_so(client: Client) -> None:
    client.force_login(people.nobody())
    assert "an admin grants roles" in shown(client).content.decode().lower()


def test_tallies_are_for_those_who_see_whole_clusters(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SAMPLE", 1)
    for _ in range(3):
        put()
    start = datetime.now(UTC) - timedelta(days=1)
    Tally.objects.create(cluster="prod", start=start, allowed=10)
    Tally.objects.create(cluster="test", start=start, allowed=100)
    client.force_login(people.person("part", cluster="prod", namespace="team"))
    assert shown(client).context["is_tallied"] is False
    client.force_login(people.person("whole", cluster="prod"))
    context = shown(client).context
    assert (context["is_tallied"], context["total"]) == (True, 13)


def test_a_file_has_all_that_fits(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admission.record.search.stream.PIECE", 4)
    made = [put(name=f"p{number}").pk for number in range(10)]
    put(user="bob")
    response = shown(reader, "?user=ada", f"{HERE}export.csv")
    text = b"".join(response.streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["id"] for row in rows] == made[::-1]
    assert text.count("\r\n") == 11
    lines = b"".join(shown(reader, "?user=ada", f"{HERE}export.jsonl").streaming_content)
    assert [json.loads(line)["id"] for line in lines.splitlines()] == made[::-1]
    assert "attachment" in response["Content-Disposition"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_no_cell_is_a_formula(reader: Client, cell: str) -> None:
    put(name=cell, user=cell, namespace=cell, message=cell, reason=cell)
    response = shown(reader, "", f"{HERE}export.csv")
    text = b"".join(response.streaming_content).decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    for name in ("name", "user", "namespace", "message", "reason"):
        assert row[name] == f"'{cell}"
    assert neutral("web-1") == "web-1"


@pytest.mark.parametrize("sign", "=+-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe6b")
@pytest.mark.parametrize("before", ["", " ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\x00"])
def test_cell_is_no_formula_in_any_spelling(before: str, sign: str) -> None:
    assert neutral(f"{before}{sign}1+1").startswith("'")


@pytest.mark.parametrize("address", ["export.csv?since=x", "export.xlsx"])
def test_no_file_for_what_cannot_be_read(reader: Client, address: str) -> None:
    assert reader.get(HERE + address).status_code in {400, 404}


@pytest.mark.parametrize("address", ["", "newer/", "export.csv", "export.jsonl"])
def test_strangers_are_sent_to_sign_in(client: Client, address: str) -> None:
    assert client.get(HERE + address).status_code == 302


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples so small that a few decisions are many."""
    for name, value in {"SAMPLE": 4, "LOOKED": 6, "DAYS": 2, "MOST_DAYS": 4}.items():
        monkeypatch.setattr(search, name, value)


def put_over_days(number: int) -> None:
    """Refusals that every query of ``FITTING`` finds, over five months."""
    for each in range(number):
        at = datetime.now(UTC) - timedelta(days=(7 * each) % 150, seconds=60 + next(SECONDS))
        # Soon after midnight that is the day before.
        partitions.ensure(at)
        refused(
            id=decision_id.encode(int(at.timestamp() * 1000), each),
            name=f"web-{each}",
            request_uid="one",
            dry_run=True,
            **of_class("high"),
            policy_names=" LimitRange/team/lr ",
        )


def test_every_filter_has_its_place_in_the_test_below() -> None:
    known = AuditEventFilter({}, queryset=AuditEvent.objects.none()).filters
    assert {name for query in FITTING for name in QueryDict(query)} == set(known)


def asked_in(queries: CaptureQueriesContext) -> int:
    """The statements beside those that count: by tallies of days, and by stretches of rows."""
    counting = ("COUNT(*) FROM (SELECT", "admission_daytally")
    return sum(not any(part in query["sql"] for part in counting) for query in queries)


@pytest.mark.usefixtures("small")
def test_no_filter_and_no_number_of_decisions_asks_more(reader: Client) -> None:
    asked: dict[str, set[int]] = {}
    for more in (7, 14):
        put_over_days(more)
        shown(reader)
        for query in FITTING:
            with CaptureQueriesContext(connection) as queries:
                context = shown(reader, f"?{query}").context
            number = asked_in(queries) - (TALLIED if context["is_tallied"] else 0)
            asked.setdefault(query, set()).add(number)
    assert {query: found for query, found in asked.items() if found != {QUESTIONS}} == {}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("query", ["", "user=ada", "cluster=prod", "cluster=prod&kind=Pod"])
def test_pages_at_any_depth_ask_the_same(reader: Client, query: str) -> None:
    put_over_days(21)
    older, asked, seen = query, set(), list[str]()
    while older or not seen:
        shown(reader, f"?{older}")
        with CaptureQueriesContext(connection) as queries:
            context = shown(reader, f"?{older}").context
        seen += [row.newest.id for row in context["rows"]]
        asked.add(asked_in(queries) - (TALLIED if context["is_tallied"] else 0))
        older = context["older_query"]
    assert len(set(seen)) == len(seen) == 21
    assert asked <= {QUESTIONS, QUESTIONS - 1}
