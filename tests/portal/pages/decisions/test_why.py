"""The page of one decision: what it says of then and now, and that it can be taken along."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from policies.services.changes import describe_change
from tests import changes, factories, people
from tests.builders import container, pod

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

    from admission.models import AuditEvent
    from tests.portal.pages.decisions.conftest import Decided

pytestmark = pytest.mark.django_db
QUESTIONS = 24
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'><script>alert(1)</script>",
    "</pre><script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "{{ 7*7 }}{% debug %}",
    "javascript:alert(1)",
    "' OR 1=1 --",
    "=cmd|' /C calc'!A0",
    "$(touch /x)",
    "`touch /x`",
    "EOF",
    "a\nEOF\nrm -rf /",
    "\u202egnp.exe",
    "\u0000nul",
    "\x1b[31mred",
    "A" * 4000,
    "\U0001d54f" * 60,
    "&lt;b&gt;&amp;",
]  # fmt: skip
GREEDY = pod(container(requests={"cpu": "3"}, limits={"cpu": "4"}), namespace="team")


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def shown(reader: Client, event: AuditEvent, tab: str = "trace") -> Any:
    response = reader.get(f"/decisions/{event.pk}?tab={tab}")
    assert response.status_code == 200
    return response


def at_most(cpu: str) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": cpu}})


def test_a_refusal_comes_with_a_change_that_passes(reader: Client, decided: Decided) -> None:
    at_most("2")
    context = shown(reader, decided(GREEDY)).context
    assert context["is_of_then"]
    assert [each.new for each in context["suggestions"][0]["changes"]] == ["2", "2"]
    assert context["suggestions"][0]["today"].allowed
    assert not context["today"].allowed


def test_what_changed_since_makes_the_difference(reader: Client, decided: Decided) -> None:
    at_most("2")
    event = decided(GREEDY)
    at_most("8")
    context = shown(reader, event).context
    assert (context["today"].allowed, context["today_differs"]) == (True, True)
    assert [each.revision.number for each in context["deciding"]] == [1]
    (since,) = context["since"]
    assert since.revision.number == 2
    assert "spec.limits[0].max.cpu was changed from 2 to 8" in since.words


def test_what_the_portal_changed_is_compared_line_by_line(reader: Client, decided: Decided) -> None:
    factories.limit_range({"type": "Container", "default": {"cpu": "1"}})
    response = shown(reader, decided(pod(namespace="team"), phase="mutate"), "object")
    added = [line.text.strip() for line in response.context["patched"] if line.look == "added"]
    assert 'cpu: "1"' in added
    assert "<ins>" in response.content.decode()


def test_the_case_is_answered_as_on_record(
    reader: Client,
    decided: Decided,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_most("2")
    factories.resource_quota({"pods": "3"})
    copies = {
        each.name: each.text
        for each in shown(reader, decided(GREEDY), "reproduce").context["copies"]
    }
    (tmp_path / "cases.jsonl").write_text(copies["case"])
    call_command("admit", "--cases", str(tmp_path / "cases.jsonl"))
    answer = json.loads(capsys.readouterr().out)
    assert [each["reason"] for each in answer["violations"]] == ["MaxConstraint"]


def test_the_review_for_curl_is_answered_the_same(reader: Client, decided: Decided) -> None:
    at_most("2")
    copies = {
        each.name: each.text
        for each in shown(reader, decided(GREEDY), "reproduce").context["copies"]
    }
    head, body = copies["curl"].split("\n", 1)
    assert "$KEY" in head
    again = reader.post(
        "/admission/prod/validate",
        body.removesuffix("EOF"),
        content_type="application/json",
        headers={"Authorization": f"Bearer {factories.webhook_secret()}"},
    ).json()["response"]
    assert (again["allowed"], again["status"]["code"]) == (False, 403)


def test_an_update_shows_what_the_caller_changed(reader: Client, decided: Decided) -> None:
    factories.namespace()
    old = pod(namespace="team", labels={"team": "a"}, resourceVersion="1")
    new = pod(namespace="team", labels={"team": "b"}, resourceVersion="1")
    event = decided(new, oldObject=old, operation="UPDATE")
    context = shown(reader, event, "object").context
    changed = [(line.sign, line.text.strip()) for line in context["updated"] if line.sign in "+-"]
    assert changed == [("-", "team: a"), ("+", "team: b")]
    assert "kubectl replace" in shown(reader, event, "reproduce").context["copies"][0].text


def test_a_deletion_is_told_and_not_judged_again(reader: Client, decided: Decided) -> None:
    factories.namespace()
    context = shown(reader, decided({}, object=None, oldObject=GREEDY, operation="DELETE")).context
    assert context["today"] is None
    assert not context["is_searched"]


@pytest.mark.sampled
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_callers_wrote_stays_text(reader: Client, decided: Decided, text: str) -> None:
    at_most("2")
    hostile = {
        **GREEDY,
        "metadata": {"name": text, "labels": {text: text}, "annotations": {"a": text}},
    }
    event = decided(hostile, userInfo={"username": text, "groups": [text]})
    for tab in ("trace", "object", "raw", "reproduce"):
        response = shown(reader, event, tab)
        page = response.content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<svg onload" not in page
    assert all("\nEOF\nrm" not in copy.text for copy in response.context["copies"])


def test_who_sees_the_namespace_alone_sees_its_decisions_alone(
    client: Client, decided: Decided
) -> None:
    at_most("2")
    event = decided(GREEDY)
    for name, place, code in (
        ("mine", "team", 200),
        ("other", "other", 404),
    ):
        client.force_login(people.person(name, cluster="prod", namespace=place))
        assert client.get(f"/decisions/{event.pk}").status_code == code


def test_a_large_namespace_asks_no_more_questions(
    reader: Client,
    decided: Decided,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(8):
        factories.limit_range({"type": "Container", "max": {"cpu": "2"}}, name=f"lr{number}")
        factories.resource_quota({"pods": str(number)}, name=f"rq{number}")
    event = decided(GREEDY)
    shown(reader, event)
    with django_assert_num_queries(QUESTIONS):
        shown(reader, event)


def test_a_quota_that_was_exceeded_names_the_change_of_that_amount(
    reader: Client, decided: Decided
) -> None:
    factories.resource_quota({"requests.cpu": "9", "pods": "5"})
    factories.resource_quota({"requests.cpu": "2", "pods": "5"})
    factories.resource_quota({"requests.cpu": "2", "pods": "6"})
    context = shown(reader, decided(GREEDY)).context
    assert [each.revision.number for each in context["deciding"]] == [2]
    assert context["deciding"][0].words == ["spec.hard[requests.cpu] was changed from 9 to 2"]


def test_a_range_that_did_not_hold_names_the_change_of_that_bound(
    reader: Client, decided: Decided
) -> None:
    for most, least in (("9", "1m"), ("2", "1m"), ("2", "2m")):
        factories.limit_range({"type": "Container", "max": {"cpu": most}, "min": {"cpu": least}})
    context = shown(reader, decided(GREEDY)).context
    assert [each.revision.number for each in context["deciding"]] == [2]
    assert "from 9 to 2" in " ".join(context["deciding"][0].words)


def test_a_rule_that_refused_names_the_change_that_brought_it(
    reader: Client, decided: Decided
) -> None:
    harmless = {"PolicyAction": {"updatedLabels": {"seen": "yes"}}}
    refusing = {"PolicyAction": {"reject": True}}
    factories.metadata_policy(harmless)
    factories.metadata_policy(refusing)
    factories.metadata_policy(harmless, refusing)
    context = shown(reader, decided(GREEDY, phase="mutate")).context
    assert [each.revision.number for each in context["deciding"]] == [2]


def test_a_denial_names_the_change_that_made_it_so(reader: Client, decided: Decided) -> None:
    at_most("9")
    change = changes.change_of(changes.limit("2"))
    description = {"reason": "Nodes run out of memory", "ticket": "PLAT-2214"}
    describe_change(change, description=description, user=changes.AUTHOR)
    changes.published(change)
    response = shown(reader, decided(GREEDY))
    [deciding] = response.context["deciding"]
    assert deciding.behind.change.pk == change.pk
    text = response.content.decode()
    assert f'<a href="/changes/{change.pk}/">' in text
    assert "PLAT-2214" in text
    assert "Nodes run out of memory" in text


def test_a_full_quota_comes_with_the_limits_that_have_room(
    reader: Client, decided: Decided
) -> None:
    factories.resource_quota({"requests.cpu": "2", "pods": "0"})
    (raised,) = shown(reader, decided(GREEDY)).context["raises"]
    limits = {each.resource: (each.old, each.new) for each in raised["limits"]}
    assert limits == {"pods": ("0", "1"), "requests.cpu": ("2", "3")}


def test_a_limit_is_no_way_out_where_another_policy_refuses(
    reader: Client, decided: Decided
) -> None:
    at_most("2")
    factories.resource_quota({"requests.cpu": "2"})
    assert shown(reader, decided(GREEDY)).context["raises"] == []


def test_who_may_not_edit_learns_who_may(client: Client, decided: Decided) -> None:
    factories.resource_quota({"pods": "0"})
    event = decided(GREEDY)
    for name, place in (("mine", "team"), ("theirs", "other")):
        people.person(name, "editor", cluster="prod", namespace=place)
    client.force_login(people.person("reader"))
    assert shown(client, event).context["editors"] == ["mine"]
    client.force_login(people.person("boss", "admin"))
    assert shown(client, event).context["editors"] == []


def test_similar_denials_are_counted_as_the_log_finds_them(
    reader: Client, decided: Decided
) -> None:
    at_most("2")
    for letter in "abc":
        event = decided({**GREEDY, "metadata": {"generateName": "web-", "name": f"web-{letter}"}})
    decided({**GREEDY, "metadata": {"name": "other"}})
    context = shown(reader, event).context
    assert context["alike"].number == 3
    assert reader.get(f"/decisions/?{context['alike_query']}").context["number"].number == 3


def test_a_tab_that_is_not_known_is_the_trace(reader: Client, decided: Decided) -> None:
    at_most("2")
    assert shown(reader, decided(GREEDY), "nonsense").context["tab"] == "trace"
