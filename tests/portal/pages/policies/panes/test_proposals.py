"""What pages would write, added to a change: a draft, a deletion, a text, an edit of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.manifests.render import render_manifests
from policies.models import ChangeSet, LimitRange
from tests import factories, kept_tests, people
from tests.changes import change_of, cpu, limit, published
from tests.people import signed_in

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
EDITOR = "/clusters/prod/namespaces/team/limitranges/lr/"
IMPORT = "/clusters/prod/import/"


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.namespace()


@pytest.fixture
def editor() -> Client:
    return signed_in(people.person("ed", "editor"))


def page_of(change: ChangeSet) -> str:
    return f"/changes/{change.pk}/"


def propose(client: Client, manifest: dict[str, Any], seen: int, **fields: str) -> Any:
    yaml = render_manifests([manifest])
    return client.post(
        EDITOR, {"do": "propose", "yaml": yaml, "shown": "", "seen": str(seen), **fields}
    )


def test_the_editor_adds_its_draft_to_a_new_change_and_to_one_of_ones_own(editor: Client) -> None:
    factories.apply(limit("1"))
    added = propose(editor, limit("2"), 1, reason="why")
    change = ChangeSet.objects.get()
    assert (added.status_code, added["Location"]) == (302, page_of(change))
    assert (change.title, change.reason, change.author) == ("Change LimitRange lr", "why", "ed")
    item = change.items.get()
    assert (item.base_revision, item.base, item.content) == (1, limit("1"), limit("2"))
    assert cpu() == "1"
    assert f"#{change.pk} Change LimitRange lr" in editor.get(EDITOR).content.decode()
    propose(editor, limit("3"), 1, change=str(change.pk))
    assert change.items.get().content == limit("3")
    assert ChangeSet.objects.count() == 1


def test_the_editor_adds_nothing_that_is_no_change_or_goes_nowhere(editor: Client) -> None:
    factories.apply(limit("1"))
    assert propose(editor, limit("1"), 1).status_code == 422
    assert propose(editor, limit("2"), 1, change="99").status_code == 422
    done = published(change_of(limit("5", name="x")))
    assert propose(editor, limit("2"), 1, change=str(done.pk)).status_code == 422
    assert propose(editor, limit("a lot"), 1).status_code == 422
    viewer = signed_in(people.person("vi"))
    assert propose(viewer, limit("2"), 1).status_code == 403
    assert list(ChangeSet.objects.all()) == [done]


def test_the_editor_adds_a_deletion_in_place_of_deleting(editor: Client) -> None:
    factories.apply(limit("1"))
    sent = {"do": "propose-deletion", "seen": "1"}
    assert editor.post(EDITOR, {**sent, "seen": "7"}).status_code == 422
    assert signed_in(people.person("vi")).post(EDITOR, sent).status_code == 403
    assert not ChangeSet.objects.exists()
    added: Any = editor.post(EDITOR, {**sent, "reason": "not needed"})
    change = ChangeSet.objects.get()
    assert (added.status_code, added["Location"]) == (302, page_of(change))
    assert (change.title, change.reason) == ("Delete LimitRange lr", "not needed")
    item = change.items.get()
    assert (item.action, item.base_revision) == ("delete", 1)
    assert cpu() == "1"
    published(change)
    assert not LimitRange.objects.exists()


def test_a_priority_class_is_deleted_by_no_change(editor: Client) -> None:
    factories.priority_class()
    page, sent = "/clusters/prod/priorityclasses/high/", {"do": "propose-deletion", "seen": "1"}
    all_ = signed_in(people.person("all", "admin"))
    assert "propose-deletion" not in all_.get(page).content.decode()
    assert all_.post(page, sent).status_code == 404


def imported(client: Client, *manifests: dict[str, Any], **fields: str) -> Any:
    """What a text would write, added to a change."""
    sent = {"text": render_manifests(manifests)}
    seen = client.post(IMPORT, {**sent, "do": "plan"}).context["plan"].seen
    return client.post(IMPORT, {**sent, "do": "propose", "seen": seen, **fields})


def test_an_import_is_added_and_not_saved(editor: Client) -> None:
    factories.apply(limit("1"))
    factories.apply(limit("1", name="same"))
    wanted = (limit("2"), limit("3", name="new"), limit("1", name="same"))
    added = imported(editor, *wanted, reason="from git")
    change = ChangeSet.objects.get()
    assert (added.status_code, added["Location"]) == (302, page_of(change))
    assert (change.title, change.reason) == ("Import 3 objects into prod", "from git")
    assert {(item.name, item.action, item.base_revision) for item in change.items.all()} == {
        ("lr", "change", 1), ("new", "add", 0),
    }  # fmt: skip
    assert (cpu(), cpu("new")) == ("1", "")
    imported(editor, limit("5"), change=str(change.pk))
    assert change.items.get(name="lr").content == limit("5")


def test_an_import_adds_nothing_that_was_overtaken_or_that_no_change_holds(editor: Client) -> None:
    factories.apply(limit("1"))
    assert imported(editor, limit("2"), seen="before").status_code == 409
    assert imported(editor, limit("1")).status_code == 422
    assert imported(editor, limit("2"), change="99").status_code == 422
    client = signed_in(people.person("all", "admin"))
    test = kept_tests.kept()
    refused = imported(client, limit("2"), test)
    assert (refused.status_code, test["metadata"]["name"] in refused.context["form_error"]) == (
        422, True,
    )  # fmt: skip
    factories.namespace("other")
    theirs = limit("2", namespace="other")
    one = signed_in(people.person("one", "editor", cluster="prod", namespace="team"))
    assert imported(one, theirs).status_code == 403
    assert not ChangeSet.objects.exists()


def test_an_edit_of_many_policies_is_added_and_not_saved(editor: Client) -> None:
    for name in ("lr", "other"):
        factories.apply(limit("1", name=name))
    edit = {
        "act": "mode:audit",
        "pick": ["prod/LimitRange/team/lr", "prod/LimitRange/team/other"],
    }
    seen = editor.post("/policies/edit/", edit).context["shown"].seen
    sent = {**edit, "do": "propose", "reason": "calm down"}
    assert editor.post("/policies/edit/", sent).status_code == 409
    added = editor.post("/policies/edit/", {**sent, "seen": seen})
    change = ChangeSet.objects.get()
    assert (added.status_code, added["Location"]) == (302, page_of(change))
    assert (change.title, change.reason) == ("Set 2 policies to audit", "calm down")
    assert [(item.name, item.base_revision) for item in change.items.all()] == [
        ("lr", 1), ("other", 1),
    ]  # fmt: skip
    assert {policy.enforcement for policy in LimitRange.objects.all()} == {"enforce"}
    edit = {"act": "delete", "pick": "prod/LimitRange/team/lr"}
    seen = editor.post("/policies/edit/", edit).context["shown"].seen
    chosen = {**edit, "do": "propose", "seen": seen, "change": str(change.pk)}
    assert editor.post("/policies/edit/", chosen)["Location"] == page_of(change)
    assert {item.name: item.action for item in change.items.all()} == {
        "lr": "delete", "other": "change",
    }  # fmt: skip
    published(change)
    assert LimitRange.objects.get().enforcement == "audit"
