"""Admins of the fleet write, order, switch and delete rules of approval by their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.models import ApprovalRule
from policies.models.changes.approval_rule import TERMS
from policies.services import changes
from tests import factories, people
from tests.approvals import in_review, rule
from tests.changes import limit
from tests.people import signed_in

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
RULES = "/changes/-/rules/"
NEW = f"{RULES}new/"
ALL_TERMS = {
    "name": "all",
    "enabled": "on",
    "kinds": ["LimitRange", "ResourceQuota"],
    "clusters": "prod, prod-us prod",
    "namespaces": "payments team-*",
    "deletes": "on",
    "enforces": "on",
    "below_used": "on",
    "flips_over": "0",
    "restarts_over": "10",
    "namespaces_over": "3",
    "red_tests_over": "1",
    "approvers": "2",
    "role": "admin",
    "for_each_namespace": "on",
    "checks_green": "on",
}
LEAST = {"name": "least", "approvers": "1", "role": "approver"}


@pytest.fixture
def root() -> Client:
    return signed_in(people.person("root", "admin"))


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def names() -> list[str]:
    return list(ApprovalRule.objects.values_list("name", flat=True))


def test_an_empty_list_teaches_and_makes_the_preset(root: Client) -> None:
    assert "Nobody has to approve a change" in text(root.get(RULES))
    assert root.post(RULES, {"preset": ""}).status_code == 302
    (line,) = root.get(RULES).context["rules"]
    assert line["when"] == (
        "an object is set to enforce, or a hard value is set below what is used, "
        "or more than 10 pods could not restart"
    )
    assert line["asks"] == "1 approver of each namespace"


def test_red_tests_block_by_the_other_preset(root: Client) -> None:
    assert root.post(RULES, {"preset": "tests"}).status_code == 302
    (line,) = root.get(RULES).context["rules"]
    assert (line["when"], line["asks"]) == ("a kept test would be red", "green checks")


def test_a_preset_that_is_there_is_not_made_twice(root: Client) -> None:
    changes.add_preset(user="root")
    assert "No rule was made" in text(root.post(RULES, {"preset": ""}, follow=True))
    assert names() == ["four eyes on enforce"]


def test_all_terms_are_written_and_shown_in_words(root: Client) -> None:
    assert root.post(NEW, ALL_TERMS).status_code == 302
    stored = ApprovalRule.objects.get()
    assert {name: getattr(stored, name) for name in TERMS} == {
        "name": "all",
        "enabled": True,
        "kinds": ["LimitRange", "ResourceQuota"],
        "clusters": ["prod", "prod-us"],
        "namespaces": ["payments", "team-*"],
        "deletes": True,
        "enforces": True,
        "below_used": True,
        "flips_over": 0,
        "restarts_over": 10,
        "namespaces_over": 3,
        "red_tests_over": 1,
        "approvers": 2,
        "role": "admin",
        "for_each_namespace": True,
        "checks_green": True,
    }
    (line,) = root.get(RULES).context["rules"]
    assert line["when"].startswith("an object is deleted, or an object is set to enforce, or ")
    assert line["when"].endswith(
        "or more than 0 verdicts of the replay would differ, or more than 10 pods could not "
        "restart, or it changes more than 3 namespaces, or more than 1 kept test would be red; "
        "kinds LimitRange, ResourceQuota; "
        "clusters prod, prod-us; namespaces payments, team-*"
    )
    assert line["asks"] == "2 admins of each namespace, green checks"


def test_what_is_left_out_is_off_and_a_rule_without_cause_is_about_any_change(root: Client) -> None:
    assert root.post(NEW, LEAST).status_code == 302
    stored = ApprovalRule.objects.get()
    assert (stored.enabled, stored.deletes, stored.flips_over) == (False, False, None)
    (line,) = root.get(RULES).context["rules"]
    assert line["when"] == "any change"
    assert line["asks"] == "1 approver of all namespaces together"


def test_the_form_of_a_rule_keeps_what_it_does_not_change(root: Client) -> None:
    root.post(NEW, ALL_TERMS)
    stored = ApprovalRule.objects.get()
    form = root.get(f"{RULES}{stored.pk}/").context["form"]
    shown = {name: form[name].value() for name in (*TERMS, "seen")}
    sent = {
        name: value for name, value in shown.items() if value is not None and value is not False
    }
    assert root.post(f"{RULES}{stored.pk}/", {**sent, "name": "both"}).status_code == 302
    again = ApprovalRule.objects.get()
    assert again.to_json() == {**stored.to_json(), "name": "both"}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "four eyes"}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"kinds": "Pod"}, "kinds"),
        ({"clusters": "x" * 64}, "clusters"),
        ({"namespaces": "Team"}, "namespaces"),
        ({"flips_over": "-1"}, "flips_over"),
        ({"restarts_over": "9" * 30}, "restarts_over"),
        ({"namespaces_over": "some"}, "namespaces_over"),
        ({"red_tests_over": "-1"}, "red_tests_over"),
        ({"approvers": "11"}, "approvers"),
        ({"approvers": "0"}, "approvers"),
        ({"role": "viewer"}, "role"),
        ({"seen": "x"}, "seen"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_written(
    root: Client, wrong: dict[str, str], field: str
) -> None:
    rule("four eyes")
    response = root.post(NEW, {**LEAST, **wrong})
    assert response.status_code == 422
    assert list(response.context["form"].errors) == [field]
    assert 'class="errorlist"' in text(response)
    assert names() == ["four eyes"]


def test_a_rule_that_was_written_meanwhile_is_not_overwritten(root: Client) -> None:
    made = rule("one")
    changes.save_rule(made, user="max", terms={"approvers": 2})
    response = root.post(f"{RULES}{made.pk}/", {**LEAST, "name": "one", "seen": "1"})
    assert response.status_code == 422
    assert "Somebody has written this rule" in text(response)
    assert ApprovalRule.objects.get().approvers == 2


def test_rules_are_moved_up_and_down(root: Client) -> None:
    one, _, three = rule("one"), rule("two"), rule("three")
    root.post(RULES, {"up": three.pk})
    assert names() == ["one", "three", "two"]
    root.post(RULES, {"down": one.pk})
    assert names() == ["three", "one", "two"]


def test_a_rule_is_disabled_and_enabled(root: Client) -> None:
    made = rule()
    root.post(RULES, {"disable": made.pk})
    assert not ApprovalRule.objects.get().enabled
    root.post(RULES, {"enable": made.pk})
    assert ApprovalRule.objects.get().enabled


def test_a_deleted_rule_lets_a_change_pass_that_waited_for_it_alone(root: Client) -> None:
    factories.apply(limit("1"))
    change = in_review()
    root.post(RULES, {"delete": ApprovalRule.objects.get().pk})
    assert names() == []
    change.refresh_from_db()
    assert change.state == "approved"
    assert "let it pass" in text(root.get(f"/changes/{change.pk}/timeline/"))


@pytest.mark.parametrize("number", ["99", "x", "9" * 40])
def test_a_rule_that_is_not_there_is_not_found(root: Client, number: str) -> None:
    assert root.get(f"{RULES}{number}/").status_code == 404
    assert root.post(RULES, {"delete": number}).status_code == 404


@pytest.mark.parametrize(("role", "cluster"), [("approver", ""), ("admin", "prod")])
def test_only_admins_of_the_fleet_come_in_and_are_led_there(
    root: Client, role: str, cluster: str
) -> None:
    made = rule()
    other = signed_in(people.person("max", role, cluster=cluster))
    for address in (RULES, NEW, f"{RULES}{made.pk}/"):
        assert other.get(address).status_code == 403
        assert other.post(address, {"delete": made.pk, **LEAST}).status_code == 403
    assert names() == ["four eyes"]
    assert RULES not in text(other.get("/changes/"))
    assert RULES in text(root.get("/changes/"))


def test_the_page_of_a_rule_has_its_history_under_its_earlier_names(root: Client) -> None:
    other = rule("second")
    changes.delete_rule(rule("third"), user="root")
    made = rule("third")
    terms = {"name": "renamed", "approvers": 2, "deletes": True}
    changes.save_rule(made, user="max", terms=terms)
    made.refresh_from_db()
    changes.save_rule(made, user="root", terms={"enabled": False})
    changes.move_rule(made, user="root", places=-1)
    found = root.get(f"{RULES}{made.pk}/").context["history"]
    assert [(each.action, each.person.username) for each in found] == [
        ("moved", "root"),
        ("changed", "root"),
        ("changed", "max"),
        ("created", "root"),
    ]
    assert found[1].differences == [("State", "in force", "disabled")]
    assert {label: after for label, _, after in found[2].differences} == {
        "Name": "renamed",
        "When": "an object is deleted",
        "Asks for": "2 approvers of each namespace",
    }
    assert found[3].differences[0] == ("Name", "", "third")
    assert [each.action for each in root.get(f"{RULES}{other.pk}/").context["history"]] == [
        "created"
    ]


def test_a_new_rule_has_no_history(root: Client) -> None:
    assert "history" not in root.get(NEW).context
