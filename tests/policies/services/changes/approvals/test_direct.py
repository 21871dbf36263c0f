"""A save without a change is refused where rules of approval ask for more than a save can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.models import Charge, LimitRange, PolicyRevision, ResourceQuota
from policies.services import changes
from tests import factories, people
from tests.approvals import approved_by, rule
from tests.changes import AUTHOR, change_of, cpu, limit
from tests.kept_tests import kept

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.apply(limit("1"))
    factories.apply(quota("10"))


def quota(pods: str, **metadata: Any) -> dict[str, Any]:
    return factories.manifest("ResourceQuota", {"hard": {"pods": pods}}, name="q", **metadata)


def needs_of(write: Callable[[], Any]) -> list[str]:
    """The needs that stand in the way of a write, which leaves nothing."""
    before = PolicyRevision.objects.count()
    with pytest.raises(services.ApprovalRequiredError) as caught:
        write()
    assert (caught.value.code, PolicyRevision.objects.count()) == ("approval_required", before)
    return [need.words for need in caught.value.needs]


def delete() -> services.Saved:
    return services.delete_policy(policy=LimitRange.objects.get(), user=AUTHOR, reason="x")


def test_without_rules_a_save_needs_nothing() -> None:
    factories.apply(limit("2"))
    assert cpu() == "2"


@pytest.mark.parametrize(
    "terms",
    [
        {"kinds": ["ResourceQuota"]},
        {"namespaces": ["other*"]},
        {"clusters": ["stage"]},
        {"deletes": True},
        {"enforces": True},
        {"below_used": True},
        {"namespaces_over": 1},
        {"checks_green": True, "approvers": 0},
    ],
)
def test_a_save_that_no_rule_is_about_passes(terms: dict[str, Any]) -> None:
    rule(**terms)
    factories.apply(limit("2"))
    assert cpu() == "2"


def test_a_rule_without_causes_refuses_every_save_where_it_looks() -> None:
    rule(namespaces=["team"])
    assert needs_of(lambda: factories.apply(limit("2"))) == ["needs 1 approver of team"]
    assert needs_of(lambda: factories.apply(limit(name="new")))
    assert needs_of(delete)
    assert cpu() == "1"


def test_a_deletion_is_refused_by_a_rule_about_deletions() -> None:
    rule(deletes=True)
    assert needs_of(delete) == ["needs 1 approver of team: LimitRange lr would be deleted"]


def test_an_object_that_comes_to_enforce_is_refused_by_a_rule_about_that() -> None:
    audit = {"annotations": {"policy.gatehouse.dev/enforcement": "audit"}}
    factories.apply(limit(name="seen", **audit))
    rule(enforces=True)
    assert needs_of(lambda: factories.apply(limit(name="seen")))
    factories.apply(limit("3", name="seen", **audit))


def test_a_hard_value_below_what_is_used_is_refused_by_a_rule_about_that() -> None:
    made = ResourceQuota.objects.get()
    of_quota = {"cluster": made.owner, "quota_uid": made.uid, "namespace": "team"}
    for number in range(5):
        Charge.objects.create(
            **of_quota, resource="pods", object_uid=f"u{number}", amounts={"pods": "1"}
        )
    rule(below_used=True)
    assert needs_of(lambda: factories.apply(quota("4")))
    factories.apply(quota("5"))


@pytest.mark.parametrize("terms", [{"flips_over": 10}, {"restarts_over": 0}])
def test_what_only_a_worker_finds_out_is_no_matter_of_a_save(terms: dict[str, Any]) -> None:
    rule(**terms)
    assert needs_of(lambda: factories.apply(limit("2")))


def test_many_namespaces_of_one_write_are_counted_together() -> None:
    cluster = factories.cluster()
    for name in ("one", "two"):
        factories.namespace(name)
    rule(namespaces_over=1)

    def apply(*names: str) -> Any:
        return services.apply_in_namespaces(
            cluster=cluster, manifest=limit("2"), namespaces=names, user=AUTHOR
        )

    assert needs_of(lambda: apply("one", "two"))
    apply("one")


def test_an_object_that_one_write_touches_twice_is_judged_by_its_ends() -> None:
    rule(deletes=True)
    cluster = factories.cluster()
    with services.policy_write(cluster):
        factories.apply(limit("2", name="passing"))
        factories.apply(limit("3", name="passing"))
    assert LimitRange.objects.filter(name="passing").exists()


def test_what_a_cluster_reports_is_stored_whatever_rules_say() -> None:
    rule()
    cluster = factories.cluster()
    services.apply_manifest(cluster=cluster, manifest=limit("3"), user="cluster:prod")
    assert cpu() == "3"


def test_a_namespace_is_not_deleted_around_a_rule_and_a_cluster_is() -> None:
    rule(deletes=True)
    team = factories.namespace()
    assert needs_of(lambda: services.delete_namespace(namespace=team, user=AUTHOR))
    services.delete_cluster(cluster=team.cluster, user=AUTHOR)
    assert not LimitRange.objects.exists()


def test_a_change_that_was_approved_is_published_and_reverted() -> None:
    change = change_of(limit("2"))
    rule()
    changes.submit(change, user=AUTHOR)
    passed = approved_by(change, people.person("ann", "approver"))
    done = changes.publish(passed, user=AUTHOR)
    assert cpu() == "2"
    changes.revert(done, user=AUTHOR)
    assert cpu() == "1"


@pytest.mark.parametrize("terms", [{}, {"red_tests_over": 0}])
def test_a_save_that_turns_a_kept_test_red_is_refused_where_checks_must_be_green(
    terms: dict[str, Any],
) -> None:
    factories.apply(kept())
    rule(checks_green=True, approvers=0, **terms)
    (words,) = needs_of(lambda: factories.apply(limit("4")))
    assert "too-large" in words
    factories.apply(limit("2"))
