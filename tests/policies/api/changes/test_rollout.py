"""A roll-out by the API: planned by the author, carried out by who may write, in clear refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies.services import changes
from tests import api_document, factories, people
from tests.changes import AUTHOR, change_of, cpu, limit

if TYPE_CHECKING:
    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db
PLAN = {"waves": [{"percent": 100, "stages": [{"mode": "enforce", "dwell": 600}]}]}


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


@pytest.fixture
def change() -> ChangeSet:
    factories.apply(limit("1"))
    return changes.submit(change_of(limit("2")), user=AUTHOR)


def client_of(role: str) -> Client:
    client = Client()
    client.force_login(people.person(role, role))
    return client


@pytest.fixture
def editor() -> Client:
    return client_of("editor")


def ask(client: Client, change: ChangeSet, step: str = "", body: Any = None) -> Any:
    method = client.post if step else client.put
    return method(
        f"/api/v1/changes/{change.pk}/rollout/{step}",
        json.dumps(body or {}),
        content_type="application/json",
    )


def state(change: ChangeSet) -> str:
    change.refresh_from_db()
    return str(change.state)


def test_a_change_is_planned_and_rolled_out(editor: Client, change: ChangeSet) -> None:
    planned = ask(editor, change, body=PLAN)
    assert planned.status_code == 200, planned.content
    assert (planned.json()["at"], planned.json()["total"]) == (0, 1)
    started = ask(editor, change, "start/", {"content_hash": change.content_hash})
    assert started.status_code == 200, started.content
    assert (started.json()["at"], started.json()["starter"]) == (1, "editor")
    assert [each["written"] for each in started.json()["stages"]] == [1]
    assert (state(change), cpu()) == ("rolling_out", "2")
    assert ask(editor, change, "stop/", {"note": "wait"}).status_code == 200
    assert state(change) == "stopped"
    assert ask(editor, change, "resume/").status_code == 200
    assert ask(editor, change, "advance/", {"expected": 9}).status_code == 200
    assert state(change) == "rolling_out"
    assert ask(editor, change, "advance/", {"expected": 1}).status_code == 200
    assert state(change) == "done"


def test_a_bad_plan_is_refused_by_its_member(editor: Client, change: ChangeSet) -> None:
    answer = ask(editor, change, body={"waves": [{"percent": 0}], "x": 1})
    assert answer.status_code == 422
    assert set(answer.json()["errors"]) == {"waves[0].percent", "x"}
    assert editor.get(f"/api/v1/changes/{change.pk}/rollout/").status_code == 404


@pytest.mark.parametrize(
    "body", ["[]", '"text"', "5", '{"waves": [{"percent": %s}]}' % ("9" * 5000)]
)
def test_a_plan_of_other_json_is_refused(editor: Client, change: ChangeSet, body: str) -> None:
    address = f"/api/v1/changes/{change.pk}/rollout/"
    answer = editor.put(address, body, content_type="application/json")
    assert answer.status_code == 422, answer.content


def test_steps_are_refused_without_a_plan_and_in_other_states(
    editor: Client, change: ChangeSet
) -> None:
    assert ask(editor, change, "start/").status_code == 400
    assert ask(editor, change, "advance/", {"expected": 1}).status_code == 404
    ask(editor, change, body=PLAN)
    assert ask(editor, change, "advance/", {"expected": 1}).status_code == 409
    assert ask(editor, change, "stop/").status_code == 409


def test_a_viewer_reads_and_takes_no_step(editor: Client, change: ChangeSet) -> None:
    ask(editor, change, body=PLAN)
    viewer = client_of("viewer")
    assert viewer.get(f"/api/v1/changes/{change.pk}/rollout/").json()["plan"]["on_trip"] == "stop"
    steps = ("", "start/", "advance/", "stop/", "resume/")
    assert {ask(viewer, change, step, PLAN).status_code for step in steps} == {403}
    assert (state(change), cpu()) == ("approved", "1")
