"""A decision asked again as of an instant: by the page, by the API, and why it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from admission.models import AuditEvent
from admission.replay.as_of.redecision import DifferenceKind, redecide
from admission.replay.recorded import Unreplayed
from policies import services
from policies.history import InstantError, format_instant
from policies.models import ResourceQuota
from tests import people
from tests.builders import container, limit_range
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    Apply = Callable[..., None]
    Ask = Callable[..., Any]

NARROW = limit_range({"type": "Container", "max": {"cpu": "2"}})
WIDE = {**NARROW, "spec": {"limits": [{"type": "Container", "max": {"cpu": "9"}}]}}
DEFAULTS = limit_range({"type": "Container", "default": {"cpu": "1"}})


@pytest.fixture
def refused(apply: Apply, ask: Ask) -> AuditEvent:
    """The record of a pod whose limit is above the maximum of its range."""
    apply(NARROW)
    ask(review(new_pod("p", container(limits={"cpu": "4"}))))
    return AuditEvent.objects.get()


def asked(client: Client, event: AuditEvent, at: str) -> dict[str, Any]:
    answer = client.get(f"/api/v1/decisions/{event.pk}/redecide/", {"at": at})
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def kinds(event: AuditEvent) -> set[str]:
    return {each.kind.value for each in redecide(event, timezone.now()).differences}


def test_at_its_own_time_the_answer_is_the_recorded_one(
    refused: AuditEvent, apply: Apply, ask: Ask
) -> None:
    apply(quota(hard={"pods": "1", "limits.cpu": "4"}))
    ask(review(new_pod("q", container(limits={"cpu": "1"}, requests={"cpu": "1"}))))
    ask(review(new_pod("r", container(limits={"cpu": "1"}, requests={"cpu": "1"}))))
    moments = {each.pk: each.created for each in AuditEvent.objects.all()}
    apply(WIDE)
    services.delete_policy(policy=ResourceQuota.objects.get(), user="root")
    for event in AuditEvent.objects.all():
        found = redecide(event, moments[event.pk])
        assert found.obstacle is None
        assert found.differences == (), event.name


def test_the_policies_of_the_instant_decide(refused: AuditEvent, apply: Apply) -> None:
    before = timezone.now()
    apply(WIDE)
    found = redecide(refused, timezone.now())
    assert found.decision
    assert found.decision.allowed
    assert {each.kind for each in found.differences} == {
        DifferenceKind.VERDICT,
        DifferenceKind.VANISHED_REASON,
    }
    assert next(each for each in found.differences if each.reason).reason == "MaxConstraint"
    assert redecide(refused, before).differences == ()


def test_a_quota_has_the_room_of_the_instant(apply: Apply, ask: Ask) -> None:
    apply(quota(hard={"pods": "1"}))
    ask(review(new_pod("p", container(limits={"cpu": "1"}))))
    allowed = AuditEvent.objects.get()
    ask(review(new_pod("q", container(limits={"cpu": "1"}))))
    denied = AuditEvent.objects.exclude(pk=allowed.pk).get()
    assert kinds(allowed) == set()  # its own charge does not count
    assert kinds(denied) == set()
    apply(quota(hard={"pods": "2"}))
    assert kinds(denied) == {"verdict", "vanished_reason"}


def test_another_patch_is_named(apply: Apply, ask: Ask) -> None:
    apply(DEFAULTS)
    ask(review(new_pod("p", container())), phase="mutate")
    event = AuditEvent.objects.get()
    assert kinds(event) == set()
    apply({**DEFAULTS, "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]}})
    found = redecide(event, timezone.now())
    assert {each.kind for each in found.differences} == {DifferenceKind.PATCH}
    assert any("now" in each.words for each in found.differences)


def test_what_was_cut_cannot_be_decided_again(refused: AuditEvent) -> None:
    refused.request = {**refused.request, "$cut": ["object"]}
    found = redecide(refused, timezone.now())
    assert (found.obstacle, found.decision) == (Unreplayed.CUT, None)
    assert found.problem


def test_what_was_redacted_cannot_be_decided_again(refused: AuditEvent) -> None:
    stored = refused.request["object"]
    containers = [{**stored["spec"]["containers"][0], "name": {"$bytes": 20_000}}]
    spec = {**stored["spec"], "containers": containers}
    refused.request = {**refused.request, "object": {**stored, "spec": spec}}
    assert redecide(refused, timezone.now()).obstacle == Unreplayed.REDACTED


def test_an_instant_before_the_record_is_refused(refused: AuditEvent) -> None:
    with pytest.raises(InstantError) as caught:
        redecide(refused, timezone.now().replace(year=1999))
    assert caught.value.code == "before_horizon"


def test_the_api_answers_both_sides(client: Client, refused: AuditEvent, apply: Apply) -> None:
    client.force_login(people.person("reader"))
    then = format_instant(timezone.now())
    apply(WIDE)
    found = asked(client, refused, then)
    assert (found["recorded_allowed"], found["answer"]["allowed"]) == (False, False)
    assert found["answer"]["violations"][0]["reason"] == "MaxConstraint"
    assert (found["obstacle"], found["differences"]) == (None, [])
    later = asked(client, refused, format_instant(timezone.now()))
    assert later["answer"]["allowed"]
    assert {each["kind"] for each in later["differences"]} == {"verdict", "vanished_reason"}


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({}, 400, "required"),
        ({"at": "soon"}, 400, "unreadable_instant"),
        ({"at": "2999-01-01T00:00Z"}, 400, "future_instant"),
        ({"at": "1999-01-01T00:00Z"}, 410, "before_horizon"),
    ],
)
def test_an_instant_that_cannot_be_answered_is_a_problem(
    client: Client, refused: AuditEvent, query: dict[str, str], status: int, code: str
) -> None:
    client.force_login(people.person("reader"))
    answer = client.get(f"/api/v1/decisions/{refused.pk}/redecide/", query)
    assert answer.status_code == status
    assert answer.json()["errors"]["at"][0]["code"] == code


def test_a_hidden_decision_is_not_found(client: Client, refused: AuditEvent) -> None:
    client.force_login(people.person("eve", cluster="other"))
    now = format_instant(timezone.now())
    answer = client.get(f"/api/v1/decisions/{refused.pk}/redecide/", {"at": now})
    assert answer.status_code == 404


def page(client: Client, event: AuditEvent, **query: str) -> str:
    client.force_login(people.person("reader"))
    answer = client.get(f"/decisions/{event.pk}", query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_page_shows_the_answer_of_an_instant(
    client: Client, refused: AuditEvent, apply: Apply
) -> None:
    apply(WIDE)
    shown = page(client, refused, as_of=format_instant(timezone.now()))
    assert '<b class="yes">allowed</b>, on record <b class="no">denied</b>' in shown
    assert "No longer: <code>MaxConstraint</code>" in shown
    assert "?at=" in shown


def test_the_page_reads_instants_in_the_zone_of_the_reader(
    client: Client, refused: AuditEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.cookies["zone"] = "Asia/Tokyo"
    shown = page(client, refused, as_of="2020-03-01T09:00")
    assert "Decide as of (UTC+9)" in shown
    assert "the record of policies begins at" in shown


def test_the_page_names_a_wrong_instant(client: Client, refused: AuditEvent) -> None:
    assert 'id="as-of-error"' in page(client, refused, as_of="soon")


def test_an_answer_takes_a_fixed_number_of_queries(refused: AuditEvent, apply: Apply) -> None:
    apply(quota("one"))
    with CaptureQueriesContext(connection) as few:
        redecide(refused, timezone.now())
    apply(quota("two"), quota("three"))
    with CaptureQueriesContext(connection) as many:
        redecide(refused, timezone.now())
    assert len(many) == len(few)
