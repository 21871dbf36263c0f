"""Rules of approval are checked, ordered and on record; changes in review are asked again."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, transaction

from policies.models import ApprovalRule, ApprovalRuleChange
from policies.services import StaleRevisionError, changes
from tests import factories
from tests.approvals import in_review, rule
from tests.changes import limit

pytestmark = pytest.mark.django_db


def history() -> list[tuple[str, str, str]]:
    rows = ApprovalRuleChange.objects.order_by("pk")
    return [(row.action, row.rule, row.actor) for row in rows]


def names() -> list[str]:
    return list(ApprovalRule.objects.values_list("name", flat=True))


def test_every_write_of_a_rule_is_on_record_with_both_sides() -> None:
    made = rule()
    saved = changes.save_rule(made, user="root", terms={"approvers": 2})
    changes.save_rule(saved, user="root", terms={"approvers": 2})
    changes.delete_rule(saved, user="max")
    assert history() == [
        ("created", "four eyes", "root"),
        ("changed", "four eyes", "root"),
        ("deleted", "four eyes", "max"),
    ]
    deleted, changed, _ = ApprovalRuleChange.objects.all()
    assert (changed.before["approvers"], changed.after["approvers"]) == (1, 2)
    assert deleted.after is None


@pytest.mark.parametrize(
    ("terms", "field", "code"),
    [
        ({"name": ""}, "name", "blank"),
        ({"approvers": 0}, "approvers", "asks_nothing"),
        ({"approvers": 11}, "approvers", "max_value"),
        ({"role": "viewer"}, "role", "invalid_choice"),
        ({"kinds": ["Pod"]}, "kinds", "unknown_kind"),
        ({"clusters": "prod"}, "clusters", "invalid"),
        ({"clusters": ["x" * 64]}, "clusters", "invalid"),
        ({"namespaces": ["Team"]}, "namespaces", "invalid"),
        ({"namespaces": ["n"] * 101}, "namespaces", "too_many"),
        ({"flips_over": 1_000_001}, "flips_over", "max_value"),
    ],
)
def test_a_wrong_rule_is_refused_by_its_field(terms: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(ValidationError) as caught:
        changes.save_rule(ApprovalRule(), user="root", terms={"name": "r", **terms})
    assert caught.value.error_dict[field][0].code == code
    assert history() == []


def test_a_rule_that_was_written_meanwhile_is_not_overwritten() -> None:
    made = rule()
    changes.save_rule(made, user="root", terms={"approvers": 2}, expected_revision=1)
    with pytest.raises(StaleRevisionError):
        changes.save_rule(made, user="root", terms={"approvers": 3}, expected_revision=1)


def test_rules_are_moved_and_stay_within_the_list() -> None:
    one, two, three = rule("one"), rule("two"), rule("three")
    changes.move_rule(three, user="root", places=-1)
    assert names() == ["one", "three", "two"]
    changes.move_rule(one, user="root", places=99)
    changes.move_rule(two, user="root", places=-99)
    assert names() == ["two", "three", "one"]
    assert [each[:2] for each in history()[3:]] == [
        ("moved", "three"), ("moved", "one"), ("moved", "two"),
    ]  # fmt: skip


def test_the_preset_is_made_once() -> None:
    made = changes.add_preset(user="root")
    assert made.name == "four eyes on enforce"
    assert (made.enforces, made.restarts_over, made.for_each_namespace) == (True, 10, True)
    with pytest.raises(ValidationError):
        changes.add_preset(user="root")


def test_a_change_that_waited_for_a_deleted_or_disabled_rule_alone_is_approved() -> None:
    factories.apply(limit("1"))
    change = in_review()
    other = rule("other")
    changes.delete_rule(ApprovalRule.objects.get(name="four eyes"), user="root")
    change.refresh_from_db()
    assert change.state == "in_review"
    changes.save_rule(other, user="root", terms={"enabled": False})
    change.refresh_from_db()
    assert change.state == "approved"
    assert change.steps.last().user == "root"


def test_the_history_of_rules_is_append_only_in_the_database() -> None:
    rule()
    for sql in (
        "UPDATE policies_approvalrulechange SET actor = 'x'",
        "DELETE FROM policies_approvalrulechange",
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute(sql)
