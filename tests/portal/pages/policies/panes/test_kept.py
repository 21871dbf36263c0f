"""The kept tests of a namespace are judged with an editor's draft, red ones first."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from policies.manifests.render import render_manifests
from policies.models import KeptTest
from portal.pages.policies.panes import kept as pane
from tests import factories, people
from tests.changes import limit
from tests.kept_tests import kept, pod

pytestmark = pytest.mark.django_db
PAGE = "/clusters/prod/namespaces/team/limitranges/lr/"


@pytest.fixture
def editor(client: Client) -> Client:
    factories.apply(limit("2"))
    client.force_login(people.person("ed", "editor"))
    return client


def results(client: Client, manifest: dict[str, Any] | None = None) -> Any:
    """What the tab says of the stored policy, or of a draft."""
    if manifest is None:
        return client.get(PAGE).context.get("kept_tests")
    sent = {"yaml": render_manifests([manifest]), "shown": "", "do": ""}
    answer = client.post(PAGE, sent, headers={"HX-Request": "true"})
    assert 'id="kept-results" hx-swap-oob="true"' in answer.content.decode()
    return answer.context.get("kept_tests")


def test_a_draft_makes_a_test_red_before_it_is_saved(editor: Client) -> None:
    factories.apply(kept("a-passes", object=pod("6")))
    factories.apply(kept("b-turns-red"))
    stored = results(editor)
    assert (stored.number, stored.red) == (2, 0)
    drafted = results(editor, limit("5"))
    assert [(each.judged.test.name, each.judged.passes) for each in drafted.lines] == [
        ("b-turns-red", False), ("a-passes", True),
    ]  # fmt: skip
    red = KeptTest.objects.get(name="b-turns-red")
    assert (drafted.red, drafted.lines[0].pk) == (1, red.pk)


def test_a_draft_that_may_not_be_saved_judges_nothing(editor: Client) -> None:
    factories.apply(kept())
    assert results(editor, limit("a lot")) is None


def test_red_ones_are_listed_first_and_the_rest_is_counted(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane, "SHOWN", 2)
    for name in ("a", "b", "c", "d"):
        factories.apply(kept(name, object=pod("6")))
    factories.apply(kept("z-red", expect={"verdict": "allow"}))
    found = results(editor)
    assert [each.judged.test.name for each in found.lines] == ["z-red", "a"]
    assert (found.number, found.red, found.left_out) == (5, 1, 3)


def test_those_who_only_read_see_no_results(editor: Client) -> None:
    factories.apply(kept())
    viewer = Client()
    viewer.force_login(people.person("vi"))
    assert results(viewer) is None
