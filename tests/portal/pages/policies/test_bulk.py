"""The page of an edit of many policies: shown, then saved for a reason; undo; export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.test import Client

from policies.models import LimitRange, PolicyRevision, ResourceQuota
from tests import factories, people

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.django_db
PAGE = "/policies/edit/"
RANGE, QUOTA = "prod/LimitRange/team/lr", "prod/ResourceQuota/team/rq"
FAR = "prod/ResourceQuota/other/rq"


@pytest.fixture(autouse=True)
def fleet() -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    for namespace in ("team", "other"):
        spec = {"hard": {"pods": "3"}}
        factories.apply(factories.manifest("ResourceQuota", spec, name="rq", namespace=namespace))


@pytest.fixture
def editor(client: Client) -> Client:
    """One who sees the whole cluster, and writes in one namespace."""
    eva = people.person("eva", "editor", cluster="prod", namespace="team")
    people.bind(eva, "viewer", cluster="prod")
    client.force_login(eva)
    return client


def show(client: Client, act: str, *picks: str, **more: str) -> Any:
    return client.post(PAGE, {"act": act, "pick": picks, **more})


def save(client: Client, act: str, picks: Sequence[str], **more: str) -> Any:
    seen = show(client, act, *picks, **more).context["shown"].seen
    given = {"act": act, "pick": picks, "seen": seen, "reason": "because", "do": "save", **more}
    return client.post(PAGE, given)


def mode() -> str:
    return str(LimitRange.objects.get().enforcement)


def test_an_edit_is_shown_saved_and_undone(editor: Client) -> None:
    shown = show(editor, "mode:audit", RANGE, QUOTA, FAR)
    assert [each.verb for each in shown.context["shown"].edits].count("refused") == 1
    assert shown.context["number"] == 2
    assert mode() == "enforce"
    saved = save(editor, "mode:audit", [RANGE, QUOTA, FAR], asked="kind=LimitRange")
    assert saved["Location"] == "/policies/?kind=LimitRange"
    assert mode() == "audit"
    (message,) = editor.get("/policies/").context["messages"]
    assert message.extra_tags.startswith("/policies/undo/?of=prod%3A")
    editor.post(message.extra_tags)
    assert mode() == "enforce"
    assert PolicyRevision.objects.order_by("-id")[0].reason == "undone: because"


def test_a_script_gets_the_sheet_alone(editor: Client) -> None:
    part = editor.post(PAGE, {"act": "delete", "pick": RANGE}, headers={"HX-Request": "true"})
    assert part.content.lstrip().startswith(b"<form")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"reason": ""}, 422),
        ({"seen": "x"}, 409),
        ({"act": "nothing"}, 404),
        ({"act": "mode:x"}, 404),
    ],
)
def test_what_is_not_complete_saves_nothing(
    editor: Client, more: dict[str, str], status: int
) -> None:
    seen = show(editor, "delete", RANGE).context["shown"].seen
    given = {"act": "delete", "pick": RANGE, "seen": seen, "reason": "r", "do": "save", **more}
    assert editor.post(PAGE, given).status_code == status
    assert LimitRange.objects.exists()


def test_a_link_only_shows(editor: Client) -> None:
    seen = show(editor, "delete", RANGE).context["shown"].seen
    given = {"act": "delete", "pick": RANGE, "seen": seen, "reason": "r", "do": "save"}
    assert editor.get(PAGE, given).status_code == 200
    assert LimitRange.objects.exists()


def test_all_that_match_are_meant_however_many_a_page_has(editor: Client) -> None:
    asked = {"all": "1", "asked": "kind=ResourceQuota&words=rq"}
    shown = editor.post(PAGE, {"act": "mode:warn", **asked})
    assert {each.key[:2] for each in shown.context["shown"].edits} == {
        ("ResourceQuota", "team"),
        ("ResourceQuota", "other"),
    }
    save(editor, "mode:warn", [], **asked)
    modes = dict(ResourceQuota.objects.values_list("namespace__name", "enforcement"))
    assert modes == {"team": "warn", "other": "enforce"}


def test_copies_need_a_namespace(editor: Client) -> None:
    assert save(editor, "copy", [RANGE]).status_code == 422
    assert save(editor, "copy", [RANGE], namespaces="team, other", name="second").status_code == 302
    assert set(LimitRange.objects.values_list("namespace__name", "name")) == {
        ("team", "lr"),
        ("team", "second"),
    }


@pytest.mark.parametrize(
    "pick", ["", "prod", "prod/Pod/team/x", "edge/LimitRange/team/lr", "a\0/b/c/d"]
)
def test_what_names_no_policy_selects_nothing(editor: Client, pick: str) -> None:
    assert show(editor, "delete", pick).status_code == 302


def test_hidden_policies_are_as_if_they_were_not_there() -> None:
    client = Client()
    client.force_login(people.person("bob", "editor", cluster="prod", namespace="other"))
    assert show(client, "delete", RANGE).status_code == 302
    assert client.get("/policies/export/", {"pick": RANGE}).content == b""


def test_dangerous_modes_are_confirmed_by_a_word(editor: Client) -> None:
    row = {"type": "Container", "min": {"cpu": "3"}}  # the other range has a maximum of 2
    annotations = {"policy.gatehouse.dev/enforcement": "audit"}
    factories.limit_range(row, name="tight", annotations=annotations)
    tight = "prod/LimitRange/team/tight"
    refused = save(editor, "mode:enforce", [tight])
    assert (refused.status_code, bool(refused.context["dangers"])) == (422, True)
    assert save(editor, "mode:enforce", [tight], confirm="team").status_code == 302
    assert LimitRange.objects.get(name="tight").enforcement == "enforce"


def test_undo_says_why_it_does_nothing(editor: Client) -> None:
    save(editor, "mode:audit", [RANGE])
    (message,) = editor.get("/policies/").context["messages"]
    factories.limit_range({"type": "Container", "max": {"cpu": "9"}})
    answer: Any = editor.post(message.extra_tags, follow=True)
    assert [each.level_tag for each in answer.context["messages"]] == ["error"]
    assert editor.get("/policies/undo/").status_code == 302
    assert editor.post("/policies/undo/?of=x&of=prod:99999999999999999999").status_code == 302


def test_export_has_what_was_picked_by_cluster(editor: Client) -> None:
    answer = editor.post("/policies/export/", {"pick": [RANGE, FAR]})
    assert "policies.yaml" in answer["Content-Disposition"]
    documents = list(yaml.safe_load_all(answer.content))
    assert [(each["kind"], each["metadata"]["namespace"]) for each in documents] == [
        ("LimitRange", "team"),
        ("ResourceQuota", "other"),
    ]
    everything = editor.get("/policies/export/?all=1&asked=kind%3DResourceQuota")
    assert len(list(yaml.safe_load_all(everything.content))) == 2


def test_viewers_export_and_nothing_more(client: Client) -> None:
    client.force_login(people.person())
    page = client.get("/policies/")
    assert not any(page.context["rights"].values())
    seen = show(client, "delete", RANGE).context["shown"]
    assert ([each.verb for each in seen.edits], seen.parts) == (["refused"], ())
    assert save(client, "delete", [RANGE]).status_code == 302
    assert LimitRange.objects.exists()
