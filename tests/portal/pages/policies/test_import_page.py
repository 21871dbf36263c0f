"""Policies by paste or upload: what it would change first, then all of it or nothing."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from policies import services
from policies.models import LimitRange, MetadataPolicy, Namespace, PolicyRevision, ResourceQuota
from tests import factories
from tests.people import person

pytestmark = pytest.mark.django_db
PAGE = "/clusters/prod/import/"
RANGE = """kind: LimitRange
apiVersion: v1
metadata: {name: lr, namespace: team}
spec: {limits: [{type: Container, max: {cpu: 2}}]}
"""
QUOTA = """---
kind: ResourceQuota
apiVersion: v1
metadata: {name: rq, namespace: team}
spec: {hard: {pods: 10}}
"""


@pytest.fixture
def editor(client: Client) -> Client:
    factories.limit_range({"type": "Container", "max": {"cpu": "4"}})
    client.force_login(person("ed", "editor", cluster="prod", namespace="team"))
    return client


def planned(client: Client, text: str) -> Any:
    return client.post(PAGE, {"text": text, "do": "plan"})


def save(client: Client, text: str, seen: str, reason: str = "because", **more: str) -> Any:
    given = {"text": text, "seen": seen, "reason": reason, "do": "save", **more}
    return client.post(PAGE, given)


def test_plan_says_what_would_change_and_writes_nothing(editor: Client) -> None:
    revisions = PolicyRevision.objects.count()
    response = planned(editor, RANGE + QUOTA)
    found = [each["planned"] for each in response.context["objects"]]
    assert [each.verb for each in found] == ["changed", "created"]
    assert found[0].changes == ["cpu max of Container lowered from 4 to 2"]
    assert PolicyRevision.objects.count() == revisions


def test_all_is_saved_for_a_reason(editor: Client) -> None:
    seen = planned(editor, RANGE + QUOTA).context["plan"].seen
    assert save(editor, RANGE + QUOTA, seen, "").status_code == 422
    assert save(editor, RANGE + QUOTA, seen).status_code == 302
    assert ResourceQuota.objects.filter(name="rq").exists()
    assert str(LimitRange.objects.get().rows.get().max) == "2"


def test_one_bad_object_keeps_all_from_being_saved(editor: Client) -> None:
    response = save(editor, RANGE + QUOTA.replace("10", "-1"), "")
    assert response.status_code == 422
    assert [problem.line for problem in response.context["plan"].problems] == [9]
    assert str(LimitRange.objects.get().rows.get().max) == "4"


def test_what_was_saved_meanwhile_is_not_written_over(editor: Client) -> None:
    seen = planned(editor, RANGE).context["plan"].seen
    factories.limit_range({"type": "Container", "max": {"cpu": "8"}})
    assert save(editor, RANGE, seen).status_code == 409
    assert str(LimitRange.objects.get().rows.get().max) == "8"


def test_other_namespaces_are_neither_shown_nor_written(editor: Client) -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "31313"}}, namespace="elsewhere")
    text = RANGE.replace("team", "elsewhere")
    response = planned(editor, text)
    assert b"31313" not in response.content
    assert response.context["may_save"] is False
    assert save(editor, text, response.context["plan"].seen).status_code == 403


def test_file_is_read_in_place_of_the_text(editor: Client) -> None:
    file = SimpleUploadedFile("policies.yaml", QUOTA.encode())
    response: Any = editor.post(PAGE, {"file": file, "do": "plan"})
    assert [each["planned"].name for each in response.context["objects"]] == ["rq"]
    broken = SimpleUploadedFile("policies.yaml", b"\xff\xfe\x00")
    assert editor.post(PAGE, {"file": broken, "do": "plan"}).status_code == 422


def test_viewer_has_no_form_and_a_stranger_no_page(editor: Client) -> None:
    client = Client()
    client.force_login(person("vi", "viewer", cluster="prod"))
    assert b"<textarea" not in client.get(PAGE).content
    assert planned(client, RANGE).status_code == 403
    client.force_login(person("ot", "editor", cluster="other"))
    assert client.get(PAGE).status_code == 404


def test_a_namespace_is_made_only_with_the_tick_and_the_right_to(client: Client) -> None:
    factories.cluster()
    text = RANGE.replace("team", "fresh")
    client.force_login(person("chief", "admin", cluster="prod"))
    refused = planned(client, text)
    assert (refused.status_code, refused.context["plan"].problems[0].field) == (
        422,
        "metadata.namespace",
    )
    ticked = {"text": text, "create_namespaces": "on", "reason": "because"}
    plan = client.post(PAGE, {**ticked, "do": "plan"})
    assert not Namespace.objects.exists()
    saved = client.post(PAGE, {**ticked, "seen": plan.context["plan"].seen, "do": "save"})
    assert saved.status_code == 302
    assert Namespace.objects.filter(name="fresh").exists()


def test_an_editor_makes_no_namespaces_by_import(client: Client) -> None:
    factories.cluster()
    client.force_login(person("ed", "editor", cluster="prod"))
    given = {"text": RANGE, "create_namespaces": "on", "do": "plan"}
    assert client.post(PAGE, given).status_code == 403
    assert b"create_namespaces" not in client.get(PAGE).content


def many(count: int, *, cpu: str = "1") -> str:
    return "---\n".join(
        RANGE.replace("name: lr", f"name: r{number}").replace("cpu: 2", f"cpu: {cpu}")
        for number in range(count)
    )


def test_a_preview_asks_little_and_writes_nothing(editor: Client) -> None:
    asked = []
    for count in (5, 50):
        with CaptureQueriesContext(connection) as queries:
            assert planned(editor, many(count)).status_code == 200
        asked.append(len(queries))
        verbs = {query["sql"].split()[0] for query in queries}
        assert verbs <= {"SELECT"}, verbs
    assert asked[0] == asked[1]


@pytest.mark.long
def test_two_thousand_objects_are_previewed_and_saved(editor: Client) -> None:
    text = many(2000)
    plan = planned(editor, text).context["plan"]
    assert len(plan.objects) == 2000
    assert save(editor, text, plan.seen).status_code == 302
    assert LimitRange.objects.count() == 2001
    assert {each.verb for each in planned(editor, text).context["plan"].objects} == {"unchanged"}


REFUSES: Final = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: MetadataPolicy
metadata: {name: none, namespace: %s}
spec: {rules: [{policyAction: {reject: true}}]}
"""


@pytest.mark.parametrize(
    ("places", "word"), [(["team"], "team"), (["team", "web"], "2"), (["team", "web"], "team")]
)
def test_what_refuses_everything_is_imported_by_name_or_number(
    client: Client, places: list[str], word: str
) -> None:
    for place in places:
        factories.namespace(place)
    client.force_login(person("ed", "editor", cluster="prod"))
    text = "---\n".join(REFUSES % place for place in places)
    seen = planned(client, text).context["plan"].seen
    assert save(client, text, seen).status_code == 422
    fits = word == (places[0] if len(places) == 1 else str(len(places)))
    answer = save(client, text, seen, confirm=word)
    assert answer.status_code == (302 if fits else 422)
    assert MetadataPolicy.objects.count() == (len(places) if fits else 0)


def test_bounds_are_said_with_their_numbers(editor: Client) -> None:
    (problem,) = planned(editor, many(2001)).context["plan"].problems
    assert "2001 objects; at most 2000" in problem.message
    (problem,) = planned(editor, RANGE + "#" * 300_000).context["plan"].problems
    assert "at most 300000" in problem.message


@pytest.mark.parametrize("there", ["same", "other", "no object", "no namespace"])
def test_what_is_hidden_is_told_alike_whatever_is_there(editor: Client, there: str) -> None:
    hidden = RANGE.replace("team", "theirs")
    if there == "no object":
        factories.namespace("theirs")
    elif there != "no namespace":
        cpu = "2" if there == "same" else "3"
        factories.limit_range(
            {"type": "Container", "max": {"cpu": cpu}}, name="lr", namespace="theirs"
        )
    answer = planned(editor, hidden + QUOTA)
    first, second = answer.context["objects"]
    assert (first["may_write"], first["planned"].before, first["planned"].after) == (
        False,
        None,
        {},
    )
    assert second["may_write"]
    assert not answer.context["may_save"]
    # What was stored of the one that is seen: nothing; the hidden one adds nothing to it.
    alone = planned(editor, QUOTA.removeprefix("---\n")).context["plan"].seen
    assert answer.context["plan"].seen == alone
    assert save(editor, hidden + QUOTA, answer.context["plan"].seen).status_code == 403


def test_plan_names_who_set_what_it_would_overwrite(editor: Client) -> None:
    with services.managed_by(services.FieldWriter("git:platform", "3f2a91c")):
        factories.limit_range({"type": "Container", "max": {"cpu": "5"}})
    [found] = [each["planned"] for each in planned(editor, RANGE).context["objects"]]
    [managed] = found.overwrites
    assert (managed.field, str(managed.manager)) == (
        "spec.limits", "git:platform, commit 3f2a91c",
    )  # fmt: skip
    assert "git:platform, commit 3f2a91c" in planned(editor, RANGE).content.decode()
