"""Policies by paste or upload: what it would change first, then all of it or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from policies.models import LimitRange, Namespace, PolicyRevision, ResourceQuota
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


def save(client: Client, text: str, seen: str, reason: str = "because") -> Any:
    return client.post(PAGE, {"text": text, "seen": seen, "reason": reason, "do": "save"})


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
    factories.limit_range({"type": "Pod", "max": {"cpu": "31"}}, namespace="elsewhere")
    text = RANGE.replace("team", "elsewhere")
    response = planned(editor, text)
    assert b"31" not in response.content
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
