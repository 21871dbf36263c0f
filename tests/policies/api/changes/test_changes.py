"""Changes by the API: filled, submitted, published, reverted, merged; each refusal by its name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from policies.models import ChangeSet, LimitRange
from tests import factories, people
from tests.changes import LR, change_of, cpu, limit
from tests.people import signed_in

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
CHANGES = "/api/v1/changes/"


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.namespace()


@pytest.fixture
def editor() -> Client:
    return signed_in(people.person("ed", "editor"))


def ask(
    client: Client, path: str, body: Any = None, *, method: str = "post", **headers: str
) -> Any:
    options = {"headers": headers} if headers else {}
    address = path if path.startswith("/") else f"{CHANGES}{path}"
    return getattr(client, method)(
        address, json.dumps(body or {}), content_type="application/json", **options
    )


def made(client: Client, *documents: Any, **members: Any) -> dict[str, Any]:
    """A new change with documents."""
    answer = ask(client, "", {"title": "Lower it", **members})
    assert answer.status_code == 201, answer.content
    change: dict[str, Any] = answer.json()
    if documents:
        proposed = ask(
            client, f"{change['id']}/propose/", {"cluster": "prod", "documents": list(documents)}
        )
        assert proposed.status_code == 200, proposed.content
        change = proposed.json()
    return change


def problem(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def errors(answer: Any) -> dict[str, list[str]]:
    return {
        place: [each["code"] for each in found] for place, found in answer.json()["errors"].items()
    }


def test_a_change_is_made_filled_published_and_reverted(editor: Client) -> None:
    factories.apply(limit("1"))
    change = made(editor, limit("2"), reason="why", ticket="PLAT-1")
    assert (change["state"], change["author"], change["ticket"]) == ("draft", "ed", "PLAT-1")
    [item] = change["objects"]
    assert (item["action"], item["base_revision"]) == ("change", 1)
    assert (item["base"], item["content"]) == (limit("1"), limit("2"))
    assert item["changes"] == ["cpu max of Container raised from 1 to 2"]
    address = f"{change['id']}/"
    submitted = ask(editor, f"{address}submit/", {"content_hash": change["content_hash"]}).json()
    assert submitted["state"] == "approved"
    assert cpu() == "1"
    published = ask(editor, f"{address}publish/", {"note": "go"}).json()
    assert (published["state"], cpu()) == ("done", "2")
    assert published["objects"][0]["written"] == 2
    reverted = ask(editor, f"{address}revert/").json()
    assert (reverted["state"], cpu()) == ("reverted", "1")
    assert reverted["steps_allowed"] == ["comment"]
    assert [(step["step"], step["user"], step["note"]) for step in reverted["steps"]] == [
        ("edit", "ed", "put LimitRange team/lr of prod"),
        ("submit", "ed", ""),
        ("pass", "ed", "no approval is asked for"),
        ("publish", "ed", "go"),
        ("revert", "ed", ""),
    ]


def test_deletions_modes_and_bases_are_proposed(editor: Client) -> None:
    for name in ("lr", "old", "mode"):
        factories.apply(limit("1", name=name))
    factories.apply(limit("3"))
    change = made(editor)
    of = {"kind": "LimitRange", "namespace": "team"}
    body = {
        "cluster": "prod",
        "documents": json.dumps(limit("2")),
        "bases": [{**of, "name": "lr", "revision": 1}],
        "deletions": [{**of, "name": "old"}],
        "mode": "audit",
        "policies": [{**of, "name": "mode"}],
    }
    answer = ask(editor, f"{change['id']}/propose/", body)
    assert answer.status_code == 200, answer.content
    shown = [(one["name"], one["action"], one["base_revision"]) for one in answer.json()["objects"]]
    assert shown == [("lr", "change", 1), ("mode", "change", 1), ("old", "delete", 1)]


def test_objects_are_taken_out_and_merged(editor: Client) -> None:
    factories.apply(limit("1"))
    change = made(editor, limit("2"), limit(name="other"))
    factories.apply(limit("3"))
    address = f"{change['id']}/"
    first, other = (one["id"] for one in change["objects"])
    taken = ask(editor, f"{address}takeout/", {"objects": [other]})
    assert [one["id"] for one in taken.json()["objects"]] == [first]
    refused = ask(editor, f"{address}merge/", {"object": first})
    assert problem(refused) == (409, "merge-conflict")
    assert errors(refused) == {"spec.limits.Container.max.cpu": ["conflict"]}
    merged = ask(editor, f"{address}merge/", {"object": first, "keep": "mine"})
    assert merged.json()["objects"][0]["base"] == limit("3")
    assert ask(editor, f"{address}takeout/", {"objects": [other]}).status_code == 400


def test_what_moved_is_named_by_object(editor: Client) -> None:
    factories.apply(limit("1"))
    change = made(editor, limit("2"))
    ask(editor, f"{change['id']}/submit/")
    factories.apply(limit("3"))
    refused = ask(editor, f"{change['id']}/publish/")
    assert problem(refused) == (409, "conflict")
    assert errors(refused) == {"prod/LimitRange/team/lr": ["base_moved"]}
    assert cpu() == "3"


PLACE = "prod/LimitRange/gone/lr.metadata.namespace"
WRONG = {
    "amount": (limit("a lot"), 422, "documents[0].spec.limits[0].max[cpu]", "FieldValueInvalid"),
    "place": (limit(namespace="gone"), 400, PLACE, "unknown_namespace"),
    "kind": (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        *(400, "prod/Namespace//x.kind", "unknown_kind"),
    ),
    "other": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
        *(422, "documents", "unknown_kind"),
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_document_that_cannot_be_proposed_is_named(editor: Client, fault: str) -> None:
    document, status, place, code = WRONG[fault]
    change = made(editor)
    body = {"cluster": "prod", "documents": [document]}
    refused = ask(editor, f"{change['id']}/propose/", body)
    assert (refused.status_code, errors(refused)) == (status, {place: [code]})


def test_a_step_in_the_wrong_state_is_refused(editor: Client) -> None:
    change = made(editor, limit())
    assert problem(ask(editor, f"{change['id']}/publish/")) == (409, "wrong-state")
    assert cpu() == ""


def test_only_the_content_that_was_seen_is_submitted_and_published(editor: Client) -> None:
    change = made(editor, limit())
    for step in ("submit", "publish"):
        refused = ask(editor, f"{change['id']}/{step}/", {"content_hash": "0" * 64})
        assert problem(refused) == (409, "outdated-change")
        assert ask(editor, f"{change['id']}/{step}/", {"content_hash": change["content_hash"]})


def test_a_change_is_described_withdrawn_commented_and_abandoned(editor: Client) -> None:
    change = made(editor, limit())
    address = f"{change['id']}/"
    etag = editor.get(f"{CHANGES}{address}").headers["ETag"]
    described = ask(
        editor, address, {"title": "Other", "ticket": "A-1"}, method="patch", **{"if-match": etag}
    )
    assert (described.json()["title"], described.json()["ticket"]) == ("Other", "A-1")
    stale = ask(editor, address, {"title": "x"}, method="patch", **{"if-match": etag})
    assert stale.status_code == 412
    ask(editor, f"{address}submit/")
    assert ask(editor, f"{address}withdraw/").json()["state"] == "draft"
    ask(editor, f"{address}comment/", {"note": "hm"})
    assert ask(editor, f"{address}abandon/", {"note": "no"}).json()["state"] == "abandoned"
    assert ask(editor, f"{address}comment/", {"note": " "}).status_code == 400


def test_a_dry_run_stores_nothing(editor: Client) -> None:
    assert ask(editor, "?dryRun=All", {"title": "x"}).json()["id"] is None
    change = made(editor, limit())
    ask(editor, f"{change['id']}/submit/")
    shown = ask(editor, f"{change['id']}/publish/?dryRun=All")
    assert (shown.json()["state"], cpu()) == ("done", "")
    assert ChangeSet.objects.get().state == "approved"


def test_lists_are_narrowed_by_state_author_and_place(editor: Client) -> None:
    factories.namespace("other")
    first = change_of(limit())
    second = made(editor, limit(name="x", namespace="other"))
    for query, ids in (
        ("", {first.pk, second["id"]}),
        ("?author=ed", {second["id"]}),
        ("?state=draft&namespace=team", {first.pk}),
        ("?cluster=dev", set()),
        ("?state__in=done,approved", set()),
    ):
        listed = editor.get(f"{CHANGES}{query}").json()["results"]
        assert {one["id"] for one in listed} == ids, query
    assert editor.get(f"{CHANGES}?state=gone").status_code == 400


def test_a_change_shows_the_objects_of_places_that_one_sees() -> None:
    factories.namespace("other")
    change = change_of(limit(), limit(name="hidden", namespace="other"))
    elsewhere = change_of(limit(name="hidden2", namespace="other"))
    client = signed_in(people.person("vi", "viewer", cluster="prod", namespace="team"))
    assert [one["id"] for one in client.get(CHANGES).json()["results"]] == [change.pk]
    shown = client.get(f"{CHANGES}{change.pk}/").json()
    assert ([one["name"] for one in shown["objects"]], shown["hidden"]) == (["lr"], 1)
    assert "hidden" not in json.dumps(shown["steps"])
    assert client.get(f"{CHANGES}{elsewhere.pk}/").status_code == 404
    assert client.get(f"{CHANGES}?namespace=other").json()["results"] == []
    hidden = change.items.get(name="hidden").pk
    author = signed_in(people.person("ada", "editor", cluster="prod", namespace="team"))
    assert ask(author, f"{change.pk}/takeout/", {"objects": [hidden]}).status_code == 400


def test_a_viewer_proposes_and_steers_nothing() -> None:
    change = change_of(limit())
    viewer = signed_in(people.person("vi", "viewer"))
    assert ask(viewer, "", {"title": "x"}).status_code == 403
    for step, body in (
        ("propose", {"cluster": "prod", "documents": []}),
        ("takeout", {"objects": []}),
        ("merge", {"object": change.items.get().pk}),
        *((step, {}) for step in ("submit", "withdraw", "abandon", "publish", "revert")),
    ):
        assert ask(viewer, f"{change.pk}/{step}/", body).status_code == 403, step
    assert ask(viewer, f"{change.pk}/", {"title": "x"}, method="patch").status_code == 403
    assert ask(viewer, f"{change.pk}/comment/", {"note": "hm"}).status_code == 200


def test_one_publishes_and_reverts_what_one_may_write_as_a_whole() -> None:
    factories.namespace("other")
    change = change_of(limit(), limit(name="x", namespace="other"))
    author = signed_in(people.person("ada", "editor", cluster="prod", namespace="team"))
    chief = signed_in(people.person("chief", "admin"))
    assert ask(author, f"{change.pk}/submit/").status_code == 200
    assert ask(author, f"{change.pk}/publish/").status_code == 403
    assert ask(chief, f"{change.pk}/publish/").status_code == 200
    assert ask(author, f"{change.pk}/revert/").status_code == 403
    assert ask(chief, f"{change.pk}/revert/").status_code == 200
    assert not LimitRange.objects.exists()


def test_one_proposes_only_where_one_may_write() -> None:
    factories.namespace("other")
    user = people.person("ed", "editor", cluster="prod", namespace="team")
    people.bind(user, "viewer")
    client = signed_in(user)
    change = made(client)
    body = {"cluster": "prod", "documents": [limit(namespace="other")]}
    assert ask(client, f"{change['id']}/propose/", body).status_code == 403
    assert (
        ask(client, f"{change['id']}/propose/", {**body, "documents": [limit()]}).status_code == 200
    )
    assert [item.key for item in ChangeSet.objects.get().items.all()] == [LR]


def test_a_set_is_put_into_a_change_and_not_applied(editor: Client) -> None:
    factories.apply(limit("1"))
    factories.namespace(in_cluster="dev")
    body = {"cluster": "prod", "set": "platform", "documents": [limit("2"), limit(name="new")]}
    body["force"] = True
    first = ask(editor, "/api/v1/apply/", {**body, "changeTitle": "From git", "reason": "r"}).json()
    items = ChangeSet.objects.get().items.all()
    assert {each.manager for each in items} == {f"git:{body['set']}"}
    assert (first["applied"], cpu(), cpu("new")) == (False, "1", "")
    again = {**body, "cluster": "dev", "change": first["change"]}
    assert ask(editor, "/api/v1/apply/", again).json()["change"] == first["change"]
    change = ChangeSet.objects.get()
    assert (change.title, change.reason, change.author) == ("From git", "r", "ed")
    assert {(item.cluster, item.name, item.action) for item in change.items.all()} == {
        ("prod", "lr", "change"),
        ("prod", "new", "add"),
        ("dev", "lr", "add"),
        ("dev", "new", "add"),
    }
    applied = ask(editor, "/api/v1/apply/", body).json()
    assert (applied["applied"], applied["change"]) == (True, None)


def test_a_blocked_set_and_one_with_other_kinds_make_no_change(editor: Client) -> None:
    body = {"cluster": "prod", "set": "s", "changeTitle": "x"}
    factories.apply(limit("1"))
    blocked = ask(editor, "/api/v1/apply/", {**body, "documents": [limit("2")]}).json()
    assert (bool(blocked["blocked"]), blocked["change"]) == (True, None)
    chief = signed_in(people.person("chief", "admin"))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}
    refused = ask(chief, "/api/v1/apply/", {**body, "documents": [namespace]})
    assert errors(refused) == {"prod/Namespace//fresh.kind": ["unknown_kind"]}
    unknown = ask(editor, "/api/v1/apply/", {**body, "change": 99, "documents": []})
    assert errors(unknown) == {"change": ["unknown_change"]}
    assert not ChangeSet.objects.exists()
