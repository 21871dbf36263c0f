"""What would happen to an object: causes of changes, costs, unsaved policies; nothing written."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.errors import DecodeError
from engine.policy import Authority
from engine.policy_manifests import build_policy_set
from engine.request import Operation
from policies.models import Charge, QuotaUsage
from policies.simulation import FieldSource, Simulation, request_for, run, simulate, with_unsaved
from tests import builders, factories

DEFAULTS = {
    "type": "Container",
    "default": {"cpu": "500m", "memory": "500Mi"},
    "defaultRequest": {"cpu": "250m"},
}
TEAM = {
    "type": "Container",
    "default": {"cpu": "2", "storage": "2Gi"},
    "defaultRequest": {"storage": "1Gi"},
}
SET_LABEL = {
    "policyPredicate": {},
    "policyAction": {"reject": False, "updatedLabels": {"team": "a", "tier": "x"}},
}
SET_TEAM = {
    "policyPredicate": {},
    "policyAction": {"reject": False, "updatedLabels": {"team": "b"}},
}


def asked(*manifests: Any, pod: Any = None, **sets: Any) -> Simulation:
    """Run a pod through the policies of these manifests."""
    policies = dataclasses.replace(build_policy_set(manifests, namespace="ns"), **sets)
    return run(request_for(pod or builders.pod(), namespace="ns"), policies)


def causes(found: Simulation) -> dict[str, tuple[str, int | None]]:
    return {
        change.field: (change.cause.policy.name, change.cause.rule)
        for change in found.changes
        if change.cause.policy
    }


def test_each_default_is_the_doing_of_the_range_that_set_it_first() -> None:
    found = asked(builders.limit_range(DEFAULTS, name="a"), builders.limit_range(TEAM, name="b"))
    at = "spec.containers[0].resources"
    assert causes(found) == {
        f"{at}.limits[cpu]": ("a", None),
        f"{at}.limits[memory]": ("a", None),
        f"{at}.requests[cpu]": ("a", None),
        f"{at}.requests[memory]": ("a", None),
        f"{at}.requests[storage]": ("b", None),
        f"{at}.limits[storage]": ("b", None),
        "metadata.annotations[kubernetes.io/limit-ranger]": ("b", None),
    }


def test_a_label_is_the_doing_of_the_last_rule_that_sets_it() -> None:
    found = asked(builders.metadata_policy(SET_LABEL, SET_TEAM))
    assert causes(found) == {
        "metadata.labels[team]": ("mp", 1),
        "metadata.labels[tier]": ("mp", 0),
    }


def test_what_no_policy_does_names_the_portal_or_the_api_server() -> None:
    given = builders.pod(builders.container(limits={"cpu": "1"}))
    sources = {change.field: change.cause.source for change in asked(pod=given).changes}
    assert sources == {
        "metadata.annotations[scheduler.alpha.kubernetes.io/qos]": FieldSource.PORTAL,
        "spec.containers[0].resources.requests[cpu]": FieldSource.API_SERVER,
    }


def test_a_refused_object_still_says_what_it_would_have_taken() -> None:
    quota = builders.resource_quota({"pods": "2", "requests.cpu": "1"}, {"pods": "2"})
    quota["status"]["used"]["requests.cpu"] = "500m"
    found = asked(quota, pod=builders.pod(builders.container(requests={"cpu": "250m"})))
    lines = {line.resource: line for line in found.costs[0].lines}
    assert not found.is_admitted
    assert (str(lines["requests.cpu"].requested), str(lines["requests.cpu"].free)) == (
        "250m",
        "250m",
    )
    assert lines["pods"].is_over
    assert found.binding is lines["pods"]
    assert lines["requests.cpu"].room == 2


def test_a_hard_limit_of_zero_is_blocked() -> None:
    found = asked(builders.resource_quota({"pods": "0"}))
    (line,) = found.costs[0].lines
    assert line.is_blocked
    assert line.is_over
    assert line.used_percent == 0


def test_an_admitted_object_is_charged_and_leaves_room() -> None:
    found = asked(builders.resource_quota({"pods": "4"}, {"pods": "1"}))
    assert found.is_admitted
    assert found.costs[0].is_charged
    assert (found.costs[0].lines[0].used_percent, found.costs[0].lines[0].added_percent) == (25, 25)
    assert "charged to quota" in found.sentence


def test_a_quota_of_other_scopes_says_why_it_does_not_count() -> None:
    best_effort = builders.resource_quota({"pods": "1"}, scopes=["BestEffort"], name="be")
    found = asked(best_effort, pod=builders.pod(builders.container(requests={"cpu": "1"})))
    (cost,) = found.costs
    assert not cost.is_matched
    assert "BestEffort" in cost.detail
    assert cost.scopes == ("BestEffort",)
    assert found.binding is None


def test_what_the_api_server_itself_refuses_is_not_admitted() -> None:
    quota = builders.resource_quota({"pods": "0"})
    found = asked(quota, authority=Authority.NATIVE)
    assert found.decision.allowed
    assert not found.is_admitted
    assert [each.policy.name for each in found.refusals] == ["quota"]
    assert "by the API server" in found.sentence
    assert found.only_observed == ()


def test_an_unsaved_policy_takes_the_place_of_its_namesake() -> None:
    policies = build_policy_set(
        [builders.resource_quota({"pods": "5"}, {"pods": "3"})], namespace="ns"
    )
    draft = builders.resource_quota({"pods": "3", "services": "1"})
    draft["metadata"]["namespace"] = "elsewhere"
    found = run(request_for(builders.pod(), namespace="ns"), with_unsaved(policies, [draft]))
    assert not found.is_admitted
    assert {name: str(n) for name, n in found.policies.resource_quotas[0].used.items()} == {
        "pods": "3",
        "services": "0",
    }


def test_unsaved_policies_are_put_in_the_order_of_names() -> None:
    ranges = [builders.limit_range(TEAM, name=name) for name in ("b", "a")]
    found = with_unsaved(build_policy_set([], namespace="ns"), [*ranges, {"kind": "Secret"}])
    assert [each.name for each in found.limit_ranges] == ["a", "b"]


def test_an_unsaved_policy_that_cannot_be_read_names_its_field() -> None:
    broken = builders.limit_range({"type": "Container", "max": {"cpu": "lots"}})
    with pytest.raises(DecodeError) as error:
        with_unsaved(build_policy_set([]), [broken])
    assert error.value.field.startswith("policies[0].spec.limits[0]")


@pytest.mark.parametrize("obj", [{}, {"kind": ""}, {"kind": ["Pod"]}, {"kind": None}])
def test_an_object_without_a_kind_is_refused(obj: Any) -> None:
    with pytest.raises(DecodeError):
        request_for(obj, namespace="ns")


def test_an_object_that_cannot_be_read_is_an_answer() -> None:
    found = asked(builders.resource_quota({"pods": "1"}), pod={"kind": "Pod", "spec": []})
    assert not found.is_admitted
    assert found.changes == ()
    assert [cost.is_matched for cost in found.costs] == [False]


def test_kinds_outside_namespaces_ask_without_one() -> None:
    assert request_for({"kind": "Node"}, namespace="ns").namespace == ""
    given = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    deployment = request_for(given, namespace="ns", operation=Operation.UPDATE)
    assert str(deployment.resource) == "deployments.apps"
    assert deployment.name == "web"


@pytest.mark.django_db
def test_stored_policies_are_asked_and_nothing_is_written(
    django_assert_max_num_queries: Any,
) -> None:
    factories.limit_range(DEFAULTS)
    factories.resource_quota({"pods": "1"})
    with django_assert_max_num_queries(8):
        found = simulate(builders.pod(namespace="team"), cluster="prod", namespace="team")
    assert found.is_admitted
    assert found.costs[0].is_charged
    assert not Charge.objects.exists()
    assert QuotaUsage.objects.get().used == {"pods": "0"}


@pytest.mark.django_db
def test_an_unknown_namespace_has_no_policies() -> None:
    draft = builders.resource_quota({"pods": "0"})
    found = simulate(builders.pod(), cluster="none", namespace="none", unsaved=[draft])
    assert [each.reason for each in found.refusals] == ["ExceededQuota"]


def test_what_is_not_counted_yet_is_unknown_and_never_0() -> None:
    quota = builders.resource_quota({"pods": "4", "services": "2", "limits.x.io/y": "1"}, {})
    quota["status"] = {"hard": quota["spec"]["hard"], "used": {"services": "0"}}
    found = asked(quota)
    lines = {line.resource: line for line in found.costs[0].lines}
    pods = lines["pods"]
    assert not found.is_admitted
    assert (pods.used, pods.free, pods.room, pods.used_percent) == (None, None, None, 0)
    assert not pods.is_over
    assert [str(lines[name].used) for name in ("services", "limits.x.io/y")] == ["0", "0"]
