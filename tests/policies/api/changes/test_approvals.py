"""Approvals by the API: given, refused by their name, sent back; emergencies; rules and history."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from django.test import Client

from policies.models import ApprovalRule, LimitRange
from tests import factories, people
from tests.api_tokens import secret_of
from tests.approvals import in_review, rule
from tests.changes import AUTHOR, change_of, limit
from tests.kept_tests import kept
from tests.people import signed_in
from tests.policies.api.changes.test_changes import CHANGES, ask, problem

pytestmark = pytest.mark.django_db
RULES = "/api/v1/approvalrules/"
HISTORY = "/api/v1/approvalrulechanges/"


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.apply(limit("1"))


@pytest.fixture
def approver() -> Client:
    return signed_in(people.person("ann", "approver", cluster="prod", namespace="team"))


@pytest.fixture
def admin() -> Client:
    return signed_in(people.person("root", "admin"))


def read(client: Client, change: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(f"{CHANGES}{change.pk}/").json()
    return answer


def test_an_approver_approves_the_content_that_was_looked_at(approver: Client) -> None:
    change = in_review()
    seen = read(approver, change)
    [need] = seen["review"]["needs"]
    assert (need["words"], need["missing"], need["by"]) == ("needs 1 approver of team", 1, [])
    assert [each["kind"] for each in seen["review"]["checks"]] == ["tests", "lints", "base"]
    without = ask(approver, f"{change.pk}/approve/", {})
    assert (without.status_code, list(without.json()["errors"])) == (400, ["content_hash"])
    other = ask(approver, f"{change.pk}/approve/", {"content_hash": "0" * 64})
    assert problem(other) == (409, "outdated-change")
    given = ask(approver, f"{change.pk}/approve/", {"content_hash": seen["content_hash"]}).json()
    assert given["state"] == "approved"
    assert given["review"]["needs"][0]["by"] == ["ann"]
    assert given["review"]["approvals"] == [{"user": "ann", "counts": True}]
    again = ask(approver, f"{change.pk}/approve/", {"content_hash": seen["content_hash"]})
    assert problem(again) == (409, "approved-already")


@pytest.mark.parametrize(("name", "role", "why"), [(AUTHOR, "admin", "own-change"),
                                                   ("vic", "viewer", "no-role")])  # fmt: skip
def test_others_are_refused_by_the_reason(name: str, role: str, why: str) -> None:
    change = in_review()
    client = signed_in(people.person(name, role))
    body = {"content_hash": change.content_hash}
    assert problem(ask(client, f"{change.pk}/approve/", body)) == (403, why)
    sent = ask(client, f"{change.pk}/requestchanges/", {"note": "no"})
    assert problem(sent) == (403, why)


def test_a_token_to_read_approves_nothing() -> None:
    change = in_review()
    secret = secret_of(people.person("ann", "approver"), "read")
    answer = Client().post(
        f"{CHANGES}{change.pk}/approve/",
        {"content_hash": change.content_hash},
        content_type="application/json",
        headers={"authorization": f"Token {secret}"},
    )
    assert answer.status_code == 403


def test_a_change_is_published_once_it_has_what_it_needs(approver: Client) -> None:
    change = in_review()
    editor = signed_in(people.person("ed", "editor"))
    assert problem(ask(editor, f"{change.pk}/publish/")) == (409, "wrong-state")
    ask(approver, f"{change.pk}/approve/", {"content_hash": change.content_hash})
    rule("second", role="admin")
    refused = ask(editor, f"{change.pk}/publish/")
    assert problem(refused) == (409, "approvals-missing")
    assert refused.json()["errors"] == {
        "approvals": [{"code": "missing", "message": "needs 1 admin of team"}]
    }


def test_a_rule_of_the_api_makes_a_red_test_stop_a_publication(admin: Client) -> None:
    blocks = {"name": "tests", "red_tests_over": 0, "approvers": 0, "checks_green": True}
    made = ask(admin, RULES, blocks)
    assert (made.status_code, made.json()["red_tests_over"]) == (201, 0)
    change = change_of(limit("4"))
    assert ask(admin, f"{change.pk}/submit/").json()["state"] == "approved"
    factories.apply(kept("large-is-refused"))
    refused = ask(admin, f"{change.pk}/publish/")
    assert problem(refused) == (409, "approvals-missing")
    [error] = refused.json()["errors"]["approvals"]
    assert error["message"] == "needs green checks: tests: 1 of 1 fail: large-is-refused"
    assert ask(admin, f"{change.pk}/publishnow/", {"reason": "an outage"}).status_code == 200


def test_requested_changes_are_said(approver: Client) -> None:
    change = in_review()
    assert ask(approver, f"{change.pk}/requestchanges/", {}).status_code == 400
    answer = ask(approver, f"{change.pk}/requestchanges/", {"note": "3 is enough"}).json()
    assert (answer["state"], answer["steps"][-1]["note"]) == ("draft", "3 is enough")


def test_checks_are_run_again_by_whoever_steers_or_may_approve(approver: Client) -> None:
    change = in_review()
    checks = ask(approver, f"{change.pk}/runchecks/").json()["review"]["checks"]
    assert {each["kind"]: each["state"] for each in checks}["replay"] == "waiting"
    viewer = signed_in(people.person("vic", "viewer"))
    assert ask(viewer, f"{change.pk}/runchecks/").status_code == 403


def test_an_admin_publishes_now_and_somebody_else_reviews_it(
    admin: Client, approver: Client
) -> None:
    change = in_review()
    assert ask(approver, f"{change.pk}/publishnow/", {"reason": "x"}).status_code == 403
    assert ask(admin, f"{change.pk}/publishnow/", {}).status_code == 400
    done = ask(admin, f"{change.pk}/publishnow/", {"reason": "an outage"}).json()
    assert (done["state"], done["unreviewed"]) == ("done", True)
    assert admin.get(f"{CHANGES}?unreviewed=true").json()["count"] == 1
    assert problem(ask(admin, f"{change.pk}/review/")) == (403, "own-change")
    assert ask(approver, f"{change.pk}/review/", {"note": "fine"}).json()["unreviewed"] is False
    assert problem(ask(approver, f"{change.pk}/review/")) == (409, "not-flagged")


def test_needs_and_checks_of_hidden_places_name_nothing_of_them() -> None:
    factories.apply(limit("1", namespace="secret"))
    rule(for_each_namespace=False)
    change = change_of(limit("2"), limit("2", namespace="secret"))
    ask(signed_in(people.person("ed", "editor")), f"{change.pk}/submit/")
    seen = read(signed_in(people.person("vic", "viewer", cluster="prod", namespace="team")), change)
    assert seen["review"]["needs"][0]["words"] == (
        "needs 1 approver of namespaces that you do not see"
    )
    assert {each["words"] for each in seen["review"]["checks"]} == {""}
    assert "secret" not in str(seen["review"])


def test_rules_are_written_by_admins_and_read_by_everybody_with_a_role(
    admin: Client, approver: Client
) -> None:
    body = {"name": "deletions", "deletes": True, "namespaces": ["team-*"], "approvers": 2}
    assert ask(approver, RULES, body).status_code == 403
    made = ask(admin, RULES, body)
    assert made.status_code == 201, made.content
    address = f"{RULES}{made.json()['id']}/"
    assert approver.get(RULES).json()["results"][0]["name"] == "deletions"
    assert signed_in(people.nobody("nil")).get(RULES).json()["count"] == 0
    changed = ask(admin, address, {"approvers": 1}, method="patch")
    assert (changed.json()["approvers"], changed.json()["deletes"]) == (1, True)
    stale = ask(admin, address, {"approvers": 3}, method="patch", **{"if-match": made["ETag"]})
    assert stale.status_code == 412
    ask(admin, RULES, {"name": "other"})
    assert ask(admin, f"{address}move/", {"places": 1}).json()["position"] == 1
    for method, path in (("patch", address), ("delete", address), ("post", f"{address}move/")):
        assert ask(approver, path, {"places": 1}, method=method).status_code == 403
    assert ask(admin, address, method="delete").status_code == 204
    actions = [
        each["action"] for each in admin.get("/api/v1/approvalrulechanges/").json()["results"]
    ]
    assert actions == ["deleted", "moved", "created", "changed", "created"]
    assert approver.get(HISTORY).json()["count"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "kinds": ["Pod"]}, "kinds.0"),
        ({"name": "x", "approvers": 0}, "approvers"),
        ({"name": "x", "namespaces": ["A"]}, "namespaces"),
        ({"name": "x", "flips_over": -1}, "flips_over"),
        ({"name": "x", "red_tests_over": -1}, "red_tests_over"),
        ({"deletes": True}, "name"),
        ({"name": "x", "role": "viewer"}, "role"),
    ],
)
def test_a_wrong_rule_is_refused_by_its_field(
    admin: Client, body: dict[str, Any], field: str
) -> None:
    answer = ask(admin, RULES, body)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not ApprovalRule.objects.exists()


def test_an_unknown_member_of_a_rule_is_named(admin: Client) -> None:
    answer = ask(admin, RULES, {"name": "x", "aprovers": 1})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["aprovers"])


def test_a_name_that_is_taken_and_a_dry_run_store_nothing(admin: Client) -> None:
    rule("one")
    assert problem(ask(admin, RULES, {"name": "one"})) == (409, "already-exists")
    assert ask(admin, f"{RULES}?dryRun=All", {"name": "two"}).json()["id"] is None
    assert ApprovalRule.objects.count() == 1


def test_a_write_without_a_change_is_refused_where_a_rule_asks_for_one() -> None:
    rule()
    editor = signed_in(people.person("ed", "editor"))
    [found] = editor.get("/api/v1/limitranges/").json()["results"]
    place = f"/api/v1/limitranges/{found['id']}/"
    body, etag = json.dumps({"spec": limit("2")["spec"]}), {"If-Match": f'"{found["revision"]}"'}
    patch = {"content_type": "application/merge-patch+json", "headers": etag}
    changed = editor.patch(f"{place}?dryRun=All", body, **patch)
    deleted = editor.delete(place, headers=etag)
    for refused in (changed, deleted):
        assert problem(refused) == (409, "approval-required")
        (error,) = refused.json()["errors"][""]
        assert error["code"] == "approval_required"
        assert "needs 1 approver of team" in error["message"]
    body = {"cluster": "prod", "set": "git", "documents": yaml.safe_dump(limit(name="new"))}
    assert problem(ask(editor, "/api/v1/apply/", body)) == (409, "approval-required")
    assert LimitRange.objects.get().revision == 1
