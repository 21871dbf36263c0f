"""One policy for several namespaces: by name, or by a selector that is expanded at saving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies.models import LimitRange, Namespace, PolicyRevision
from tests import factories
from tests.people import person
from tests.running_pods import asks, running

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
PAGE = "/clusters/prod/namespaces/team/limitranges/lr/"
TIGHT = {"form": "on", "name": "lr", "row-0-item": "0", "row-0-type": "Container"} | {
    "row-0-resource": "cpu", "row-0-max": "2",
}  # fmt: skip


@pytest.fixture
def editor() -> Client:
    factories.limit_range({"type": "Container", "max": {"cpu": "4"}})
    for name in ("pay", "shop", "web"):
        factories.namespace(name)
    Namespace.objects.filter(name__in=["pay", "shop"]).update(labels={"env": "prod"})
    client = Client()
    client.force_login(person("ed", "editor", cluster="prod"))
    return client


def sent(client: Client, **fields: Any) -> Any:
    state = client.get(PAGE).context["state"]
    given = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, "reason": "why"}
    return client.post(PAGE, {**given, **TIGHT, **fields})


def maxima() -> dict[str, str]:
    ranges = LimitRange.objects.filter(name="lr").select_related("namespace")
    return {each.namespace.name: str(each.rows.get().max) for each in ranges}


def test_named_namespaces_are_saved_in_one_write_with_a_revision_each(editor: Client) -> None:
    assert sent(editor, do="save", also=["pay"], place="shop").status_code == 302
    assert maxima() == {"team": "2", "pay": "2", "shop": "2"}
    revisions = PolicyRevision.objects.filter(kind="LimitRange", user="ed")
    assert revisions.count() == 3
    assert len(set(revisions.values_list("cluster_revision", flat=True))) == 1


def test_selector_is_expanded_to_the_namespaces_that_match(editor: Client) -> None:
    checked = sent(editor, by="labels", where="env in (prod)")
    assert checked.context["places"].all == ("team", "pay", "shop")
    assert [each.is_new for each in checked.context["other_places"]] == [True, True]
    assert sent(editor, by="labels", where="env=prod", do="save").status_code == 302
    assert sorted(maxima()) == ["pay", "shop", "team"]


def test_what_stands_in_another_namespace_is_told_before_it_is_changed(editor: Client) -> None:
    manifest = LimitRange.objects.get().to_manifest()
    manifest["metadata"]["namespace"] = "pay"
    factories.apply(manifest)
    (other,) = sent(editor, also=["pay"]).context["other_places"]
    assert (other.is_new, other.words) == (False, ["cpu max of Container lowered from 4 to 2"])


@pytest.mark.parametrize("fields", [{"place": "pey"}, {"by": "labels", "where": "env in prod"}])
def test_mistake_saves_nothing_anywhere(editor: Client, fields: dict[str, str]) -> None:
    answer = sent(editor, do="save", also=["shop"], **fields)
    assert answer.status_code == 422
    assert answer.context["places"].problems
    assert maxima() == {"team": "4"}


def test_namespaces_of_others_are_not_offered_and_not_written() -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "4"}})
    factories.namespace("pay")
    client = Client()
    client.force_login(person("own", "editor", cluster="prod", namespace="team"))
    assert client.get(PAGE).context["places"].offered == ()
    assert sent(client, do="save", also=["pay"]).status_code == 422
    assert maxima() == {"team": "4"}


def test_removed_name_and_changed_revision(editor: Client) -> None:
    left = sent(editor, also=["pay", "shop"], do="unplace:pay")
    assert left.context["places"].others == ("shop",)
    factories.limit_range({"type": "Container", "max": {"cpu": "8"}})
    assert sent(editor, do="save", also=["pay"]).status_code == 409
    assert maxima() == {"team": "8"}


def test_pods_of_all_namespaces_are_counted(editor: Client) -> None:
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"))
    state = editor.get(PAGE).context["state"]
    given = {"seen": "1", "shown": state.shown, "yaml": state.draft.text, "also": ["pay"]}
    answer: Any = editor.post(f"{PAGE}restarts/", {**given, **TIGHT})
    impact = answer.context["impact"]
    assert (list(impact.places), impact.refused, impact.namespaces) == (["team", "pay"], 1, 1)


def test_queries_do_not_grow_with_the_namespaces_of_the_cluster(
    editor: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        factories.namespace(f"ns-{number}")
    with django_assert_max_num_queries(27):
        editor.get(PAGE, {"also": ["pay", "shop"]})


def test_clone_opens_the_editor_of_another_namespace_with_a_copy(editor: Client) -> None:
    led = editor.get(f"{PAGE}clone/", {"to": "pay"})
    assert led["Location"] == "/clusters/prod/namespaces/pay/limitranges/new?from=team%2Flr"
    page: Any = editor.get(led["Location"])
    assert page.context["draft"].manifest["metadata"]["namespace"] == "pay"
    assert page.context["form"]["row"][0]["max"].value == "4"
    assert maxima() == {"team": "4"}


@pytest.mark.parametrize("to", ["", "nowhere", "\0"])
def test_clone_to_no_namespace_leads_back(editor: Client, to: str) -> None:
    assert editor.get(f"{PAGE}clone/", {"to": to})["Location"] == PAGE


def test_copy_of_what_one_may_not_see_is_a_blank_policy() -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "4"}})
    factories.namespace("pay")
    client = Client()
    client.force_login(person("own", "editor", cluster="prod", namespace="pay"))
    new = "/clusters/prod/namespaces/pay/limitranges/new"
    assert client.get(new, {"from": "team/lr"}).context["form"]["row"][0]["max"].value == ""
