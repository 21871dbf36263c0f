"""One line for each request: its two calls are matched, told apart from others, and counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, Verdict, decision_id
from admission.record.search import pages as search_pages
from admission.record.search import search
from tests import people
from tests.admission.requested import requested

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.test import Client

pytestmark = pytest.mark.django_db
HERE = "/decisions/"
BEGAN = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
NUMBERS = iter(range(1, 10**6))
HTMX = {"HX-Request": "true"}


def call(phase: str, at: int, **fields: Any) -> AuditEvent:
    """Put a call on record, so many milliseconds after the beginning."""
    began = int(BEGAN.timestamp() * 1000)
    made = AuditEvent(
        **{
            "id": decision_id.encode(began + at, next(NUMBERS)),
            "duration_us": 1500 if phase == "mutate" else 700,
            "cluster": "prod",
            "phase": phase,
            "operation": "CREATE",
            "kind": "Pod",
            "namespace": "team",
            "name": "web",
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


def shown(reader: Client, query: str = "") -> Any:
    response = reader.get(HERE + query)
    assert response.status_code == 200
    return response


def lines(reader: Client, query: str = "") -> list[tuple[str, ...]]:
    return [row.line.ids for row in shown(reader, query).context["log"]]


def ids(calls: Iterable[AuditEvent]) -> tuple[str, ...]:
    return tuple(each.pk for each in calls)


def test_two_calls_of_a_request_are_one_line(reader: Client) -> None:
    first, second = call("mutate", 0, verdict=Verdict.MUTATED), call("validate", 4)
    response = shown(reader)
    (row,) = response.context["log"]
    assert (row.event.pk, row.other.pk) == (first.pk, second.pk)
    assert (row.milliseconds, row.calls) == ("2.2", "mutate 1.5 ms, validate 0.7 ms")
    assert (row.line.number, row.line.calls) == (1, 2)
    # Figures count decisions; there is one for each call.
    assert (response.context["number"].number, response.context["lines"]) == (2, 1)


@pytest.mark.parametrize(
    ("first", "second", "decided"),
    [
        ({}, {}, "validate"),
        ({"verdict": Verdict.MUTATED}, {}, "mutate"),
        ({"verdict": Verdict.MUTATED}, {"reasons": " Max "}, "validate"),
        ({"reasons": " Max "}, {"verdict": Verdict.DENIED}, "validate"),
        ({"reasons": " Max "}, {"reasons": " Max "}, "validate"),
    ],
)
def test_the_stronger_verdict_is_shown(
    reader: Client, first: dict[str, Any], second: dict[str, Any], decided: str
) -> None:
    call("mutate", 0, **first)
    call("validate", 4, **second)
    (row,) = shown(reader).context["log"]
    assert row.event.phase == decided


@pytest.mark.parametrize(
    "fields",
    [
        {"cluster": "test"}, {"namespace": "x"}, {"kind": "Job"}, {"sub_resource": "resize"},
        {"name": "web-2"}, {"user": "bob"}, {"operation": "UPDATE"}, {"dry_run": True},
        {"phase": "mutate"},
    ],
)  # fmt: skip
def test_calls_that_differ_are_two_requests(reader: Client, fields: dict[str, Any]) -> None:
    call("mutate", 0)
    call(**{"phase": "validate", "at": 4, **fields})
    assert [len(each) for each in lines(reader)] == [1, 1]


@pytest.mark.parametrize(("at", "is_one"), [(0, True), (2000, True), (2001, False), (-1, False)])
def test_the_validating_call_follows_within_two_seconds(
    reader: Client, at: int, *, is_one: bool
) -> None:
    call("validate", at)
    call("mutate", 0)
    assert (len(lines(reader)) == 1) is is_one


def test_a_generated_name_comes_between_the_calls(reader: Client) -> None:
    first = call("mutate", 0, name="web-5d9f8c7b6d-")
    second = call("validate", 3, name="web-5d9f8c7b6d-x2x4z")
    assert lines(reader) == [ids((second, first))]


def test_each_call_has_one_other(reader: Client) -> None:
    a, b = (call("mutate", at, name="web-5d9f8c7b6d-") for at in (0, 1))
    c, d = (call("validate", at, name=f"web-5d9f8c7b6d-{at}") for at in (5, 6))
    retried = call("mutate", 9)
    again, last = call("mutate", 20), call("validate", 21)
    assert lines(reader) == [ids((last, again)), ids((retried,)), ids((d, b)), ids((c, a))]


def test_refusals_that_are_alike_take_their_first_calls_along(reader: Client) -> None:
    reference = {"controller": True, "uid": "rs"}
    by_owner = requested({"object": {"metadata": {"ownerReferences": [reference]}}})
    refused = {"verdict": Verdict.DENIED, "code": 403, "reasons": " Max ", **by_owner}
    for at in (0, 100, 200):
        call("mutate", at, name=f"web-{at}", verdict=Verdict.MUTATED)
        call("validate", at + 5, name=f"web-{at}", **refused)
    response = shown(reader)
    (row,) = response.context["log"]
    assert (row.line.number, row.line.calls) == (3, 6)
    assert (response.context["number"].number, response.context["lines"]) == (6, 1)


def test_one_call_that_is_found_stands_alone(reader: Client) -> None:
    call("mutate", 0, verdict=Verdict.MUTATED)
    second = call("validate", 4, verdict=Verdict.DENIED, code=403, reasons=" Max ")
    assert lines(reader, "?verdict=denied") == [(second.pk,)]


def test_pages_neither_part_requests_nor_leave_one_out(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SAMPLE", 20)
    monkeypatch.setattr(search_pages, "SIZE", 3)
    made = []
    for number in range(8):
        at = 10 * number
        made.append((call("mutate", at, name=f"p{at}"), call("validate", at + 4, name=f"p{at}")))
    query, seen, pages = "", list[tuple[str, ...]](), 0
    while query or not seen:
        seen += lines(reader, f"?{query}")
        query, pages = shown(reader, f"?{query}").context["older_query"], pages + 1
    assert seen == [ids((second, first)) for first, second in reversed(made)]
    assert pages == 3


def test_newer_requests_are_counted_once(reader: Client) -> None:
    call("validate", 0)
    tail = shown(reader).context["tail"]
    first, second = call("mutate", 5000), call("validate", 5004)
    context = reader.get(f"{HERE}newer/?{tail}").context
    assert [row.line.ids for row in context["log"]] == [ids((second, first))]
    assert context["number"] == 1


@pytest.mark.parametrize("address", ["", "/panel"])
def test_each_call_leads_to_the_other(reader: Client, address: str) -> None:
    call("mutate", -500, name="api")
    first, second = call("mutate", 0), call("validate", 4)
    alone = call("mutate", 900)
    for one, other in ((first, second), (second, first), (alone, None)):
        response = reader.get(f"{HERE}{one.pk}{address}", headers=HTMX)
        assert (response.context["other"].pk if other else other) == (other.pk if other else None)
        links = response.content.decode().count("data-other-call")
        assert links == (1 if other else 0)
