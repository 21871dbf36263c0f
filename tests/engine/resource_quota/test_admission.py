"""A request against the quotas of its namespace: order of findings, charges, both user stories."""

from __future__ import annotations

from typing import Any

import pytest

from engine.decision import Outcome, Reason
from engine.errors import DecodeError
from engine.policy import LimitedResource, ResourceQuota
from engine.request import Operation
from engine.resource_list import to_json
from engine.resource_quota import decode_resource_quota, evaluate
from engine.selector import ScopeSelectorRequirement
from tests.builders import container, pod, request

IN = ScopeSelectorRequirement("PriorityClass", "In", ("cluster-services",))
EXISTS = ScopeSelectorRequirement("PriorityClass", "Exists")
STORY_ONE = LimitedResource(resource="pods", match_scopes=(IN,))
STORY_TWO = LimitedResource(resource="pods", match_scopes=(EXISTS,))


def quota(name: str = "q", mode: str = "enforce", **parts: Any) -> ResourceQuota:
    """A quota; ``hard``, ``used``, ``scopes`` and ``expressions`` as in a manifest."""
    spec = {"hard": parts.get("hard", {"pods": "10"}), "scopes": parts.get("scopes")}
    if "expressions" in parts:
        spec["scopeSelector"] = {"matchExpressions": parts["expressions"]}
    annotations = {"policy.gatehouse.dev/enforcement": mode}
    manifest = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    if "used" in parts:
        manifest["status"] = {"hard": parts.get("status_hard", spec["hard"]), "used": parts["used"]}
    return decode_resource_quota(manifest)


def by_priority(operator: str = "In", *values: str, **parts: Any) -> ResourceQuota:
    shape = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return quota(expressions=[shape], **parts)


def with_priority(name: str) -> dict[str, Any]:
    made = pod()
    return {**made, "spec": {**made["spec"], "priorityClassName": name}}


SEED = by_priority("In", "cluster-services", used={"pods": "9"})
FULL = by_priority("In", "cluster-services", used={"pods": "10"})
PENDING = by_priority("In", "cluster-services", used={}, status_hard={})
ANY = by_priority("Exists", used={"pods": "0"})
OTHERS = by_priority("NotIn", "x", used={"pods": "0"})
UNCOVERED_IN = "insufficient quota to match these scopes: [{PriorityClass In [cluster-services]}]"
UNCOVERED = "insufficient quota to match these scopes: [{PriorityClass Exists []}]"
EXCEEDED = "exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10"
STORIES = [
    ("one, none", "", STORY_ONE, [SEED], "", "9"),
    ("one, none elsewhere", "", STORY_ONE, [], "", None),
    ("one, other", "other", STORY_ONE, [SEED], "", "9"),
    ("one, room", "cluster-services", STORY_ONE, [SEED], "", "10"),
    ("one, full", "cluster-services", STORY_ONE, [FULL], EXCEEDED, "10"),
    ("one, pending", "cluster-services", STORY_ONE, [PENDING], "", None),
    ("one, elsewhere", "cluster-services", STORY_ONE, [], UNCOVERED_IN, None),
    ("one, exists quota", "cluster-services", STORY_ONE, [ANY], "", "1"),
    ("one, notin quota", "cluster-services", STORY_ONE, [OTHERS], "", "1"),
    ("two, none", "", STORY_TWO, [SEED], "", "9"),
    ("two, none, exists", "", STORY_TWO, [ANY], "", "0"),
    ("two, cluster-services", "cluster-services", STORY_TWO, [SEED], "", "10"),
    ("two, cluster-services, exists", "cluster-services", STORY_TWO, [ANY], "", "1"),
    ("two, elsewhere", "cluster-services", STORY_TWO, [], UNCOVERED, None),
    ("two, other", "other", STORY_TWO, [SEED], UNCOVERED, "9"),
    ("two, other, exists", "other", STORY_TWO, [ANY], "", "1"),
]


@pytest.mark.parametrize(
    ("priority", "entry", "quotas", "message", "used"),
    [row[1:] for row in STORIES],
    ids=[row[0] for row in STORIES],
)
def test_user_stories_of_the_design(
    priority: str, entry: LimitedResource, quotas: list[ResourceQuota], message: str, used: Any
) -> None:
    result = evaluate(request(with_priority(priority)), quotas, [entry])
    assert [v.message for v in result.violations] == ([message] if message else [])
    found = to_json(result.used["q"]).get("pods") if quotas else None
    assert found == used


def test_all_findings_are_listed_in_the_order_of_the_algorithm() -> None:
    quotas = [
        quota("full", hard={"pods": "0"}),
        quota("memory", hard={"memory": "1Gi"}),
        quota("unknown", hard={"cpu": "1"}, used={}),
    ]
    limited = [LimitedResource(resource="pods", match_contains=("count/",)), STORY_ONE]
    asked = request(with_priority("cluster-services"))
    reasons = [violation.reason for violation in evaluate(asked, quotas, limited).violations]
    assert reasons == [
        Reason.MUST_SPECIFY,
        Reason.MUST_SPECIFY,
        Reason.STATUS_UNKNOWN,
        Reason.INSUFFICIENT_QUOTA,
        Reason.UNCOVERED_SCOPE,
        Reason.EXCEEDED_QUOTA,
    ]


def test_exceeded_quota_names_each_resource_with_its_numbers() -> None:
    hard = {"pods": "1", "requests.cpu": "1500m", "limits.cpu": "9"}
    used = {"pods": "1", "requests.cpu": "1", "limits.cpu": "1"}
    asked = request(pod(container(requests={"cpu": "600m"}, limits={"cpu": "1"})))
    first, second = evaluate(asked, [quota(hard=hard, used=used)], []).violations
    assert first.message == second.message
    assert (first.field, second.field) == ("metadata.namespace", "spec.containers")
    assert second.numbers == {
        "resource": "requests.cpu",
        "requested": "600m",
        "used": "1",
        "hard": "1500m",
    }


def test_must_specify_points_at_the_first_container_that_is_silent() -> None:
    asked = request(pod(container("a", limits={"cpu": "1"}), container("b")))
    violation = evaluate(asked, [quota(hard={"limits.cpu": "9"})], []).violations[0]
    assert violation.field == "spec.containers[1].resources.limits[cpu]"
    assert violation.numbers == {"resource": "limits.cpu"}
    assert violation.policy is not None
    assert violation.policy.name == "q"


def test_charge_has_growth_and_whole_amount_of_the_quotas_own_names() -> None:
    before = pod(container(requests={"cpu": "1"}), resourceVersion="1")
    after = pod(container(requests={"cpu": "1500m"}))
    asked = request(after, operation=Operation.UPDATE, sub_resource="resize", old_object=before)
    bounded = quota(hard={"cpu": "9", "pods": "9"}, used={"cpu": "1", "pods": "1"})
    result = evaluate(asked, [bounded], [])
    (charge,) = result.charges
    assert to_json(charge.delta) == {"cpu": "500m"}
    assert to_json(charge.amounts) == {"cpu": "1500m", "pods": "1"}
    assert to_json(result.used["q"]) == {"cpu": "1500m", "pods": "1"}


def test_sum_is_kept_as_storage_gives_it_back() -> None:
    bounded = quota(hard={"memory": "9Gi"}, used={"memory": "1Gi"})
    asked = request(pod(container(requests={"memory": "1426258176"})))
    assert str(evaluate(asked, [bounded], []).used["q"]["memory"]) == "2500M"


def test_update_that_uses_less_is_neither_refused_nor_charged() -> None:
    before = pod(container(requests={"cpu": "2"}), resourceVersion="1")
    after = pod(container(requests={"cpu": "1"}))
    asked = request(after, operation=Operation.UPDATE, sub_resource="resize", old_object=before)
    limited = [LimitedResource(resource="pods", match_contains=("pods",))]
    result = evaluate(asked, [quota(hard={"cpu": "1"}, used={"cpu": "5"})], limited)
    assert (result.violations, result.charges) == ((), ())


def test_pod_that_becomes_terminating_is_charged_to_the_quota_it_enters() -> None:
    before = pod(resourceVersion="1")
    after = {**before, "spec": {**before["spec"], "activeDeadlineSeconds": 60}}
    asked = request(after, operation=Operation.UPDATE, old_object=before)
    quotas = [quota("left", scopes=["NotTerminating"]), quota("entered", scopes=["Terminating"])]
    (charge,) = evaluate(asked, quotas, []).charges
    assert charge.quota.name == "entered"


def test_update_without_an_old_object_is_refused() -> None:
    service = {"metadata": {"name": "s"}, "spec": {}}
    asked = request(service, resource="services", operation=Operation.UPDATE)
    result = evaluate(asked, [quota(hard={"services": "1"})], [])
    assert [violation.reason for violation in result.violations] == [Reason.NO_PREVIOUS_USAGE]


def test_negative_usage_is_refused() -> None:
    asked = request(pod(container(requests={"cpu": "-1"})))
    (violation,) = evaluate(asked, [quota(hard={"cpu": "1"})], []).violations
    assert violation.reason is Reason.NEGATIVE_USAGE
    assert violation.message == "quota usage is negative for resource(s): cpu,requests.cpu"
    assert violation.numbers == {"resource": "cpu", "requested": "-1"}


def test_dry_run_charges_nothing() -> None:
    result = evaluate(request(pod(), dry_run=True), [quota()], [])
    assert (result.violations, result.charges) == ((), ())
    assert to_json(result.used["q"]) == {"pods": "0"}


def test_status_update_is_charged_but_never_refused() -> None:
    claim = {"metadata": {"resourceVersion": "1"}, "spec": {"resources": {"requests": {}}}}
    claim["spec"] = {"resources": {"requests": {"storage": "1Gi"}}}
    after = {**claim, "status": {"allocatedResources": {"storage": "3Gi"}}}
    asked = request(
        after,
        resource="persistentvolumeclaims",
        operation=Operation.UPDATE,
        old_object=claim,
        sub_resource="status",
    )
    result = evaluate(asked, [quota(hard={"requests.storage": "1Gi"})], [])
    assert result.violations == ()
    assert to_json(result.used["q"]) == {"requests.storage": "2Gi"}


def test_status_sent_by_a_client_is_not_believed() -> None:
    made = pod(deletionTimestamp="2020-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    asked = request({**made, "status": {"phase": "Succeeded"}})
    assert evaluate(asked, [quota(hard={"pods": "0"})], [], now=2**31).violations
    before = pod(resourceVersion="1")
    after = {**before, "status": {"phase": "Failed"}}
    resize = request(after, operation=Operation.UPDATE, old_object=before, sub_resource="resize")
    assert [step.detail for step in evaluate(resize, [quota()], []).steps] == [
        "nothing it bounds grows"
    ]


@pytest.mark.parametrize("mode", ["warn", "audit"])
def test_quota_that_watches_reports_and_covers_nothing_and_is_not_charged(mode: str) -> None:
    watching = quota("watching", mode, hard={"pods": "0"})
    result = evaluate(request(pod()), [quota("real"), watching], [])
    assert [v.policy.name for v in result.violations if v.policy] == ["watching"]
    assert [charge.quota.name for charge in result.charges] == ["real"]
    assert to_json(result.used["watching"]) == {"pods": "0"}
    limited = [LimitedResource(resource="pods", match_contains=("pods",))]
    roomy = quota("watching", mode, hard={"pods": "5", "count/pods": "5"})
    found = evaluate(request(pod()), [roomy], limited)
    assert found.violations[0].reason is Reason.INSUFFICIENT_QUOTA
    assert found.steps[-1].detail == "watching: never charged"


def test_broken_selector_of_a_quota_fails_every_pod() -> None:
    broken = by_priority("In", "a b", used={"pods": "0"})
    result = evaluate(request(pod()), [broken, quota("other")], [])
    (violation,) = result.violations
    assert violation.reason is Reason.BAD_SCOPE_SELECTOR
    assert violation.message.startswith(
        "error matching scopes of quota q, err: error on matching scope {PriorityClass In [a b]}: "
    )
    assert (result.charges, result.steps[0].outcome) == ((), Outcome.ERROR)
    service = request({"spec": {}}, resource="services")
    assert evaluate(service, [broken], []).violations == ()


def test_broken_limited_resource_turns_quotas_off() -> None:
    broken = ScopeSelectorRequirement("PriorityClass", "In")
    entry = LimitedResource(resource="services", match_scopes=(broken,))
    result = evaluate(request(pod()), [quota(hard={"pods": "0"})], [entry])
    assert (result.violations, result.charges) == ((), ())
    assert result.steps[0].outcome is Outcome.ERROR


def test_step_says_that_nothing_of_the_object_is_limited() -> None:
    scope = ScopeSelectorRequirement("PriorityClass", "In", ("high",))
    limited = LimitedResource(resource="pods", match_scopes=(scope,))
    result = evaluate(request(pod()), (), (limited,))
    assert [(step.name, step.outcome) for step in result.steps] == [
        ("LimitedResources", Outcome.NOT_MATCHED)
    ]


def test_steps_say_what_came_of_each_quota() -> None:
    quotas = [
        quota("charged"),
        quota("elsewhere", hard={"services": "1"}),
        quota("full", hard={"pods": "0"}),
        quota("scoped", scopes=["Terminating"]),
    ]
    limited = [LimitedResource(resource="pods", match_contains=("pods",)), STORY_ONE]
    steps = evaluate(request(pod()), quotas, limited).steps
    assert [(step.name, step.outcome) for step in steps] == [
        ("LimitedResources", Outcome.VIOLATED),
        ("ResourceQuota", Outcome.PASSED),
        ("ResourceQuota", Outcome.NOT_MATCHED),
        ("ResourceQuota", Outcome.VIOLATED),
        ("ResourceQuota", Outcome.NOT_MATCHED),
    ]
    assert steps[1].numbers == {"pods": "0 + 1 of 10"}
    assert steps[2].detail == "it bounds no pods"
    assert steps[4].detail == "its scope Terminating Exists [] does not match"


SKIPPED: list[tuple[str, dict[str, Any], str]] = [
    ("no quota", {}, "the namespace has no quota"),
    ("cluster", {"namespace": ""}, "the object is not inside a namespace"),
    ("namespace", {"resource": "namespaces"}, "the object is not inside a namespace"),
    ("event", {"resource": "events.events.k8s.io"}, "quotas never count events.events.k8s.io"),
    ("delete", {"operation": Operation.DELETE}, "quotas do not count this operation"),
    ("binding", {"sub_resource": "binding"}, "quotas do not count this operation"),
    ("update", {"operation": Operation.UPDATE}, "quotas do not count this operation"),
    (
        "unchanged",
        {"operation": Operation.UPDATE, "old_object": pod()},
        "quotas do not count this operation",
    ),
    (
        "configmap",
        {"resource": "configmaps", "operation": Operation.UPDATE},
        "quotas do not count this operation",
    ),
]


@pytest.mark.parametrize(
    ("more", "detail"), [row[1:] for row in SKIPPED], ids=[row[0] for row in SKIPPED]
)
def test_request_that_quotas_do_not_count_is_skipped(more: dict[str, Any], detail: str) -> None:
    quotas = [quota(hard={"pods": "0"})] if more else []
    result = evaluate(request(pod(), **more), quotas, [])
    assert [(step.outcome, step.detail) for step in result.steps] == [(Outcome.SKIPPED, detail)]
    assert result.violations == ()


def test_request_without_an_object_is_skipped() -> None:
    assert evaluate(request(None), [quota()], []).steps[0].outcome is Outcome.SKIPPED


BAD: dict[str, Any] = {
    "spec": {"spec": []},
    "containers": {"spec": {"containers": {}}},
    "deadline": {"spec": {"activeDeadlineSeconds": "1"}},
    "quantity": {"spec": {"overhead": {"cpu": "x"}}},
    "priority": {"spec": {"priorityClassName": []}},
    "affinity": {"spec": {"affinity": {"podAffinity": 1}}},
}


@pytest.mark.parametrize("obj", BAD.values(), ids=BAD.keys())
def test_object_of_a_bad_shape_is_a_decode_error(obj: dict[str, Any]) -> None:
    scopes = ["Terminating", "CrossNamespacePodAffinity"]
    quotas = [quota(scopes=scopes), by_priority("Exists")]
    with pytest.raises(DecodeError):
        evaluate(request(obj), quotas, [])


FIELDS = {
    "services.nodeports": ("services", {"type": "NodePort", "ports": [{}]}, "spec.ports"),
    "services.loadbalancers": ("services", {"type": "LoadBalancer"}, "spec.type"),
    "gold.storageclass.storage.k8s.io/requests.storage": (
        "persistentvolumeclaims",
        {"storageClassName": "gold", "resources": {"requests": {"storage": "1"}}},
        "spec.resources.requests[storage]",
    ),
    "g.deviceclass.resource.k8s.io/devices": (
        "resourceclaims.resource.k8s.io",
        {"devices": {"requests": [{"exactly": {"deviceClassName": "g"}}]}},
        "spec.devices.requests",
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_violation_points_at_the_field_that_uses_the_name(name: str) -> None:
    resource, spec, field = FIELDS[name]
    asked = request({"spec": spec}, resource=resource)
    (violation,) = evaluate(asked, [quota(hard={name: "0"})], []).violations
    assert violation.field == field
