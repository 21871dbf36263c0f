"""The editor of namespace classes over HTTP: form and YAML, impact, save, conflict, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies import services
from policies.manifests.render import render_manifests
from policies.models import LimitRange, NamespaceClass, ResourceQuota
from portal.pages.classes.editor import OVERTAKEN
from tests import factories, people
from tests.namespace_classes import class_manifest, limits, quota, saved_class
from tests.running_pods import asks, running

if TYPE_CHECKING:
    from policies.drafts.forms.sheets import Sheet

pytestmark = pytest.mark.django_db
NEW = "/namespace-classes/-/new/"
PAGE = "/namespace-classes/team/"
EDIT = f"{PAGE}edit/"
SCRIPT = {"HX-Request": "true"}


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(people.person(role="admin"))
    return client


def yaml(**spec: Any) -> str:
    return render_manifests([class_manifest(**spec)])


def opened(client: Client, page: str = EDIT) -> dict[str, str]:
    """What the page would send as it stands, form included."""
    response: Any = client.get(page)
    assert response.status_code == 200
    context = response.context
    sheet: Sheet = context["draft"].sheet
    cells = {
        f"{group}-{number}-{column}": text
        for group, lines in sheet.lines.items()
        for number, line in enumerate(lines)
        for column, text in line.items()
    }
    text = {"shown": context["state"].shown, "yaml": context["draft"].text}
    return {"form": "on", "seen": str(context["seen"]), **text, **sheet.fields, **cells}


def save(client: Client, given: dict[str, str], page: str = EDIT) -> Any:
    return client.post(page, {"reason": "because", **given, "do": "save"})


def stored() -> NamespaceClass:
    return NamespaceClass.objects.get()


def test_a_form_that_nobody_edited_changes_nothing(admin: Client) -> None:
    saved_class(labels={"tier": "x"}, names=["team-*"], description="d", onLeave="remove")
    answer = admin.post(EDIT, opened(admin))
    assert (answer.context["changes"], answer.context["draft"].findings) == ([], ())
    assert save(admin, opened(admin))["Location"] == PAGE
    assert stored().version == 1


def test_every_field_of_the_form_is_saved(admin: Client) -> None:
    saved_class()
    fields = {"names": "a-*, b", "labels": "tier=x,env in (dev,test),!old", "clusters": "prod-*"}
    fields |= {"description": "for all", "onLeave": "remove", "parameter-0-default": "12"}
    assert save(admin, {**opened(admin), **fields, "policy-1-name": "sums"}).status_code == 302
    spec = stored().manifest["spec"]
    assert spec["selector"] == {
        "names": ["a-*", "b"],
        "matchLabels": {"tier": "x"},
        "matchExpressions": [
            {"key": "env", "operator": "In", "values": ["dev", "test"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }
    assert (spec["clusters"], spec["description"], spec["onLeave"]) == (
        ["prod-*"], "for all", "remove",
    )  # fmt: skip
    assert spec["parameters"] == [{"name": "pods", "type": "quantity", "default": "12"}]
    assert [each["metadata"]["name"] for each in spec["policies"]] == ["defaults", "sums"]


def test_the_yaml_is_saved_and_the_form_follows_it(admin: Client) -> None:
    saved_class()
    given = {**opened(admin), "yaml": yaml(names=["a"])}
    followed = admin.post(EDIT, given)
    assert followed.context["fields"]["names"].value == "a"
    assert save(admin, given).status_code == 302
    assert stored().manifest["spec"]["selector"] == {"names": ["a"]}


def test_both_sides_typed_into_asks_which_counts(admin: Client) -> None:
    saved_class()
    torn = {**opened(admin), "names": "b", "yaml": yaml(names=["a"])}
    answer = save(admin, torn)
    assert (answer.status_code, answer.context["state"].is_torn) == (422, True)
    taken = admin.post(EDIT, {**torn, "do": "take-form"})
    assert taken.context["fields"]["names"].value == "b"


def test_changes_are_counted_and_each_field_says_what_it_was(admin: Client) -> None:
    saved_class(names=["a"])
    sent = {**opened(admin), "names": "b", "parameter-0-default": "12"}
    answer: Any = admin.post(EDIT, sent, headers=SCRIPT)
    assert answer.context["changes"] == [
        "name pattern a removed", "name pattern b added",
        "parameter pods changed from 10 to 12",
    ]  # fmt: skip
    assert [(each.cell, each.was) for each in answer.context["changed_cells"]] == [
        ("names", "a"), ("parameter-0-default", "10"),
    ]  # fmt: skip
    undone = admin.post(EDIT, {**sent, "do": "use:names:a"})
    assert undone.context["changes"] == ["parameter pods changed from 10 to 12"]


def test_the_namespaces_that_match_are_named_while_typing(admin: Client) -> None:
    saved_class(names=["nothing"])
    factories.namespace("team-a")
    factories.namespace("other")
    factories.namespace("kube-system")
    for names, matches in (("team-*", ["team-a"]), ("", ["other", "team-a"])):
        answer: Any = admin.post(EDIT, {**opened(admin), "names": names}, headers=SCRIPT)
        assert answer.context["matches"] == {"prod": matches}


def test_a_first_line_is_added_to_a_class_without_any(admin: Client) -> None:
    saved_class()
    bare = yaml(policies=[]).replace("  policies: []\n", "")
    assert "policies" not in bare
    for button in ("add:parameter", "add:policy:LimitRange"):
        opened_bare = {"form": "on", "name": "team", "shown": bare, "yaml": bare, "do": button}
        added = admin.post(EDIT, opened_bare)
        assert len(added.context["form"][button.split(":")[1]]) == 1


def test_policies_are_added_and_dropped_and_the_others_stay_what_they_were(admin: Client) -> None:
    saved_class(policies=[limits("1"), quota(pods="9")])
    added: Any = admin.post(EDIT, {**opened(admin), "do": "add:policy:LimitRange"})
    rows = added.context["form"]["policy"]
    assert [row["name"].value for row in rows] == ["defaults", "amounts", "limits"]
    state = added.context["state"]
    given = {**opened(admin), "shown": state.shown, "yaml": state.draft.text}
    given |= {f"policy-{row.number}-{c}": row[c].value for row in rows for c in row.cells}
    dropped: Any = admin.post(EDIT, {**given, "do": "drop:policy:0"})
    rows = dropped.context["form"]["policy"]
    assert [(row["at"].value, row["name"].value) for row in rows] == [
        ("0", "amounts"), ("1", "limits"),
    ]  # fmt: skip
    assert [each["kind"] for each in dropped.context["draft"].manifest["spec"]["policies"]] == [
        "ResourceQuota", "LimitRange",
    ]  # fmt: skip


def test_a_policy_that_is_added_takes_a_name_of_its_own(admin: Client) -> None:
    saved_class(policies=[limits("1", name="limits")])
    added = admin.post(EDIT, {**opened(admin), "do": "add:policy:LimitRange"})
    names = [row["name"].value for row in added.context["form"]["policy"]]
    assert names == ["limits", "limits-2"]


def test_parameters_are_added_as_lines_of_the_form(admin: Client) -> None:
    saved_class()
    added = admin.post(EDIT, {**opened(admin), "do": "add:parameter"})
    rows = added.context["form"]["parameter"]
    assert [(row["name"].value, row["type"].value) for row in rows] == [
        ("pods", "quantity"), ("", "quantity"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "text", "cell"),
    [
        ("labels", "a >", "labels"),
        ("labels", "a>1", "labels"),
        ("names", "Team", "names"),
        ("clusters", "prod_", "clusters"),
        ("parameter-0-default", "many", "parameter-0-default"),
        ("parameter-0-name", "Pods", "parameter-0-name"),
        ("policy-1-name", "$(pods)", "policy-1-name"),
    ],
)
def test_an_error_stands_at_its_field(admin: Client, field: str, text: str, cell: str) -> None:
    saved_class()
    answer = save(admin, {**opened(admin), field: text})
    assert answer.status_code == 422
    assert cell in {each.cell for each in answer.context["draft"].findings}
    assert stored().version == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        yaml(name="other"),
        yaml(policies=[limits("1")]).replace("kind: LimitRange", "kind: Pod"),
        yaml(policies=[limits("1")]).replace("limits:", "limit:"),
        yaml().replace("policies:", "policies: {}\n  x:"),
        "kind: NamespaceClass\napiVersion: policy.gatehouse.dev/v1alpha1\nspec: {policies: }\n",
        f"{yaml()}---\n{yaml(name='more')}",
    ],
)
def test_what_is_wrong_is_listed_and_the_text_stays(admin: Client, text: str) -> None:
    saved_class()
    answer = save(admin, {**opened(admin), "yaml": text})
    assert (answer.status_code, bool(answer.context["draft"].findings)) == (422, True)
    assert answer.context["draft"].text == text
    assert stored().version == 1


def test_impact_shows_what_a_new_class_would_do_and_stores_nothing(admin: Client) -> None:
    factories.namespace("a")
    answer: Any = admin.post(NEW, {"do": "impact", "yaml": yaml()}, headers=SCRIPT)
    assert answer.templates[0].name == "classes/editor/_impact.html"
    context = answer.context
    assert (context["matched"], context["touched"], context["made"]) == (1, 1, 2)
    assert [(line.action, line.places) for line in context["lines"]] == [
        ("make", ["prod/a"]), ("make", ["prod/a"]),
    ]  # fmt: skip
    assert not NamespaceClass.objects.exists()


def test_impact_counts_running_pods_that_could_not_restart(admin: Client) -> None:
    saved_class(policies=[quota(pods="9")])
    factories.namespace("team")
    running(asks("web-1"), asks("web-2"))
    ranged = {**limits("1"), "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
    sent = {**opened(admin), "yaml": yaml(policies=[quota(pods="9"), ranged]), "do": "impact"}
    restarts = admin.post(EDIT, sent).context["restarts"]
    assert (restarts.pods, restarts.refused) == (2, 2)
    [row] = restarts.rows
    assert (row.cluster, row.namespace) == ("prod", "team")


def test_impact_of_a_text_with_problems_says_so(admin: Client) -> None:
    saved_class()
    answer: Any = admin.post(EDIT, {"yaml": "a: [", "do": "impact"}, headers=SCRIPT)
    assert "correct them first" in answer.content.decode()


def test_save_asks_first_what_it_would_change(admin: Client) -> None:
    saved_class()
    factories.namespace("a")
    given = {**opened(admin), "parameter-0-default": "12", "do": "ask"}
    answer: Any = admin.post(EDIT, given, headers=SCRIPT)
    assert (answer.context["is_asked"], answer.context["altered"]) == (True, 1)
    assert "1 namespace of 1 matching one would change" in answer.content.decode()
    assert stored().version == 1


def test_a_class_is_saved_with_a_reason_and_given_at_once(admin: Client) -> None:
    factories.namespace("a")
    sent = {"yaml": yaml(), "seen": "0"}
    unsaid = save(admin, {**sent, "reason": " "}, NEW)
    assert (unsaid.status_code, NamespaceClass.objects.exists()) == (422, False)
    saved = save(admin, sent, NEW)
    assert (saved.status_code, saved["Location"]) == (302, PAGE)
    assert (LimitRange.objects.count(), ResourceQuota.objects.count()) == (1, 1)
    assert "/clusters/prod/namespaces/a/" in admin.get(PAGE).content.decode()


def test_a_new_class_begins_with_an_example_and_takes_no_name_of_another(admin: Client) -> None:
    saved_class("standard")
    begun = opened(admin, NEW)
    assert begun["name"] == "standard-2"
    refused = save(admin, {**begun, "name": "standard"}, NEW)
    assert "already" in refused.context["draft"].findings[0].message
    assert save(admin, {**begun, "name": "small"}, NEW)["Location"] == "/namespace-classes/small/"


def test_a_save_that_was_overtaken_is_compared_with_the_newer_version(admin: Client) -> None:
    saved_class()
    given = {**opened(admin), "description": "mine"}
    saved_class(names=["theirs"])
    late = save(admin, given)
    assert (late.status_code, late.context["form_error"], late.context["seen"]) == (
        409, OVERTAKEN, 2,
    )  # fmt: skip
    assert "name pattern theirs removed" in late.context["changes"]
    assert stored().version == 2


def test_a_page_after_an_error_still_rests_on_the_version_that_was_read(admin: Client) -> None:
    saved_class()
    given = {**opened(admin), "names": "Team"}
    saved_class(names=["theirs"])
    assert save(admin, given).context["seen"] == 1


def test_many_deletions_are_saved_by_their_number_alone(admin: Client) -> None:
    saved_class(policies=[limits("1")], onLeave="remove")
    cluster = factories.cluster()
    manifests = [{"kind": "Namespace", "metadata": {"name": f"n{each}"}} for each in range(12)]
    services.create_many(cluster=cluster, manifests=manifests, user="cluster:prod")
    given = {**opened(admin), "names": "nobody"}
    asked = admin.post(EDIT, {**given, "do": "ask"})
    assert asked.context["dangers"] == ["12 policies of this class"]
    assert save(admin, {**given, "confirm": "11"}).status_code == 422
    assert LimitRange.objects.count() == 12
    assert save(admin, {**given, "confirm": asked.context["confirm_word"]}).status_code == 302
    assert LimitRange.objects.count() == 0


def test_a_class_is_deleted_with_a_reason(admin: Client) -> None:
    saved_class()
    unsaid = admin.post(EDIT, {"do": "delete", "seen": "1"})
    assert (unsaid.status_code, bool(unsaid.context["delete_error"])) == (422, True)
    assert admin.post(EDIT, {"do": "delete", "seen": "1", "reason": "r"}).status_code == 302
    assert not NamespaceClass.objects.exists()


def test_a_deletion_that_takes_many_policies_with_it_asks_for_their_number(admin: Client) -> None:
    saved_class(policies=[limits("1")], onLeave="remove")
    manifests = [{"kind": "Namespace", "metadata": {"name": f"n{each}"}} for each in range(12)]
    services.create_many(cluster=factories.cluster(), manifests=manifests, user="cluster:prod")
    sent = {"do": "delete", "seen": "1", "reason": "r"}
    asked = admin.post(EDIT, sent)
    assert (asked.status_code, asked.context["delete_removals"]) == (422, 12)
    assert asked.context["draft"].manifest == stored().manifest
    assert admin.post(EDIT, {**sent, "confirm": "12"}).status_code == 302


def test_a_deletion_that_was_overtaken_deletes_nothing(admin: Client) -> None:
    saved_class()
    saved_class(names=["theirs"])
    late = admin.post(EDIT, {"do": "delete", "seen": "1", "reason": "r"})
    assert (late.status_code, late.context["seen"]) == (409, 2)
    assert NamespaceClass.objects.exists()


def test_history_names_the_changes_of_each_version(admin: Client) -> None:
    saved_class()
    saved_class(names=["a"])
    newest, first = admin.get(EDIT).context["history"]
    assert (newest.words, newest.is_current) == (["name pattern a added"], True)
    assert (first.revision.number, first.is_current) == (1, False)


def test_those_who_may_not_write_see_the_class_without_a_form() -> None:
    saved_class()
    client = Client()
    client.force_login(people.person("v", "viewer"))
    page = client.get(EDIT).content.decode()
    assert "read-only" in page
    assert 'value="save"' not in page
    assert 'value="impact"' not in page
    assert "needs a role" in client.get(NEW).content.decode()
