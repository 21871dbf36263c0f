"""The tab Roll-out plans, starts and stops a roll-out, and says why it stopped by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies.db.clock import read_clock
from policies.models import Rollout
from policies.services import changes
from policies.services.changes import rollout
from tests import factories, people
from tests.admission.rollout.test_work import refused
from tests.changes import AUTHOR, change_of, cpu, limit, put

if TYPE_CHECKING:
    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db
PLAN = {
    "waves": [{"stages": [{"dwell": 5400}]}],
    "guards": [{"kind": "deny_rate", "above": 5}],
}


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


def press(client: Client, change: ChangeSet, verb: str, **fields: str) -> Any:
    return client.post(f"/changes/{change.pk}/rollout/", {"do": verb, **fields}, follow=True)


def states(client: Client, change: ChangeSet) -> Any:
    return client.get(f"/changes/{change.pk}/rollout/").context["progress"]


def shown(client: Client, change: ChangeSet) -> str:
    return client.get(f"/changes/{change.pk}/rollout/").content.decode()


def test_a_roll_out_is_planned_started_stopped_and_ended(editor: Client, change: ChangeSet) -> None:
    assert "not started" not in shown(editor, change)
    page = press(editor, change, "plantext", text=json.dumps(PLAN)).content.decode()
    assert "The plan is stored" in page
    assert "1 h 30 min" in page
    press(editor, change, "start", seen=change.content_hash)
    assert cpu() == "2"
    page = shown(editor, change)
    assert "stage 1 of 1" in page
    assert "Denied requests" in page
    assert "0 %, stops above 5 %" in page
    press(editor, change, "stop")
    assert "stopped in this stage" in shown(editor, change)
    press(editor, change, "resume")
    press(editor, change, "advance:1")
    change.refresh_from_db()
    assert change.state == "done"


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "The plan is no JSON."), ("{}", "waves: must have at least one wave"), ("[" * 9999, "")],
)
def test_a_bad_plan_is_said_and_kept(
    editor: Client, change: ChangeSet, text: str, words: str
) -> None:
    answer = press(editor, change, "plantext", text=text)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Rollout.objects.exists()


def test_why_it_stopped_by_itself_is_said(editor: Client, change: ChangeSet) -> None:
    press(editor, change, "plantext", text=json.dumps(PLAN))
    press(editor, change, "start")
    rollout.trip(change, user="bob", words="Failures: 3, stops above 0", reverts=False)
    assert "It stopped by itself: Failures: 3, stops above 0" in shown(editor, change)


def test_what_was_taken_back_from_a_stage_was_never_done(editor: Client, change: ChangeSet) -> None:
    press(editor, change, "plantext", text=json.dumps(PLAN))
    press(editor, change, "start")
    rollout.trip(change, user="bob", words="Failures: 3, stops above 0", reverts=True)
    labels = [each.label for each in states(editor, change)]
    assert labels == ["Draft", "In review", "Approved", "Stopped", "Reverted"]


def test_what_was_taken_back_when_it_was_done_was_done(editor: Client, change: ChangeSet) -> None:
    changes.revert(changes.publish(change, user=AUTHOR), user=AUTHOR)
    assert [each.label for each in states(editor, change)][-2:] == ["Done", "Reverted"]


def test_a_viewer_sees_no_button_and_takes_no_step(editor: Client, change: ChangeSet) -> None:
    press(editor, change, "plantext", text=json.dumps(PLAN))
    viewer = client_of("viewer")
    assert 'value="start"' not in shown(viewer, change)
    verbs = ("plan", "plantext", "addwave", "preview", "start", "advance:1", "stop", "resume")
    assert {press(viewer, change, verb).status_code for verb in verbs} == {403}
    assert press(editor, change, "nothing").status_code == 404


def test_stages_have_figures_that_refresh_themselves(editor: Client, change: ChangeSet) -> None:
    press(editor, change, "plantext", text=json.dumps(PLAN))
    assert "hx-get" not in shown(editor, change).partition("rollout-live")[2][:200]
    press(editor, change, "start")
    refused("web-5d9f8c7b6d-x2x4z", read_clock())
    page = editor.get(f"/changes/{change.pk}/rollout/")
    [line] = page.context["shown"].lines
    assert (line.is_now, line.found.figures.denied) == (True, 1)
    [owner] = page.context["shown"].owners
    assert (owner.namespace, owner.name, owner.number) == ("team", "web", 1)
    assert page.context["shown"].chart.most == 1
    assert "every 10s" in page.content.decode()
    overview = editor.get(f"/changes/{change.pk}/")
    assert (overview.context["holding"], len(overview.context["readings"])) == (0, 1)
    assert f"/changes/{change.pk}/rollout/" in overview.content.decode()


def test_who_sees_a_part_sees_no_other_place(editor: Client, change: ChangeSet) -> None:
    factories.namespace("other", in_cluster="prod")
    both = change_of(limit("3"))
    put(both, limit("3", namespace="other"))
    waves = [{"namespaces": ["team"]}, {"namespaces": ["other"]}]
    press(editor, both, "plantext", text=json.dumps({"waves": waves}))
    changes.submit(both, user=AUTHOR)
    press(editor, both, "start")
    rollout.trip(both, user="bob", words="1 (team/web), stops above 0", reverts=False)
    refused("web-5d9f8c7b6d-x2x4z", read_clock())
    client = Client()
    client.force_login(people.person("part", "viewer", cluster="prod", namespace="other"))
    for address in ("rollout/", "", "timeline/"):
        page = client.get(f"/changes/{both.pk}/{address}").content.decode()
        assert "team" not in page
        assert "web" not in page.partition("<main")[2].partition("</main")[0]
    assert rollout.TRIPPED_ELSEWHERE in shown(client, both)


def test_its_starter_is_told_on_every_page_until_they_look(
    editor: Client, change: ChangeSet
) -> None:
    press(editor, change, "plantext", text=json.dumps(PLAN))
    press(editor, change, "start")
    rollout.trip(change, user="editor", words="Failures: 3, stops above 0", reverts=True)
    told = f'<a href="/changes/{change.pk}/rollout/">change #{change.pk}</a>'
    assert told in editor.get("/decisions/").content.decode()
    assert told not in client_of("viewer").get("/decisions/").content.decode()
    assert told not in shown(editor, change)
    assert told not in editor.get("/decisions/").content.decode()
