"""Pages that save say what a rule of approval asks for, and lose nothing that was typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from policies.models import ApprovalRule, LimitRange
from tests import factories, people
from tests.approvals import rule
from tests.changes import cpu, limit

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
PAGE = "/clusters/prod/namespaces/team/limitranges/lr/"
IMPORT = "/clusters/prod/import/"
NEED = "needs 1 approver of team"


@pytest.fixture
def editor(client: Client) -> Client:
    factories.apply(limit("1"))
    client.force_login(people.person("eva", "editor", cluster="prod"))
    rule()
    return client


def text(maximum: str) -> str:
    return str(yaml.safe_dump(limit(maximum)))


def test_the_editor_keeps_the_draft_and_offers_a_change(editor: Client) -> None:
    given = {"yaml": text("2"), "reason": "because", "seen": "1", "do": "save"}
    refused: Any = editor.post(PAGE, given)
    assert (refused.status_code, cpu()) == (409, "1")
    assert NEED in refused.context["form_error"]
    assert (refused.context["reason"], refused.context["is_asked"]) == ("because", True)
    assert "cpu: '2'" in refused.context["draft"].text
    assert editor.post(PAGE, {**given, "do": "propose"}).status_code == 302


def test_a_deletion_is_refused_with_the_way_on(editor: Client) -> None:
    refused: Any = editor.post(PAGE, {"do": "delete", "reason": "gone", "seen": "1"})
    assert refused.status_code == 409
    assert NEED in refused.context["form_error"]
    assert LimitRange.objects.exists()


def test_an_edit_of_many_is_refused_with_the_way_on(editor: Client) -> None:
    given = {"act": "mode:audit", "pick": "prod/LimitRange/team/lr"}
    shown: Any = editor.post("/policies/edit/", given)
    seen = shown.context["shown"].seen
    sent = {**given, "seen": seen, "reason": "because", "do": "save"}
    refused: Any = editor.post("/policies/edit/", sent)
    assert refused.status_code == 409
    assert NEED in refused.context["form_error"]


def test_an_import_is_refused_with_the_way_on(editor: Client) -> None:
    planned: Any = editor.post(IMPORT, {"text": text("2"), "do": "plan"})
    seen = planned.context["plan"].seen
    sent = {"text": text("2"), "seen": seen, "reason": "because", "do": "save"}
    refused: Any = editor.post(IMPORT, sent)
    assert (refused.status_code, cpu()) == (409, "1")
    assert NEED in refused.context["form_error"]


def test_a_restored_version_names_the_need(editor: Client) -> None:
    ApprovalRule.objects.update(enabled=False)
    factories.apply(limit("2"))
    ApprovalRule.objects.update(enabled=True)
    refused: Any = editor.post(f"{PAGE}revisions/1/", {"do": "restore", "reason": "back"})
    assert (refused.status_code, cpu()) == (422, "2")
    assert NEED in refused.context["form_error"]
