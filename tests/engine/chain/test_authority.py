"""Who enforces: what the chain leaves to the API server's own plugins, and what it does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.chain import admit, prepare
from engine.decision import Decision, Outcome, Reason
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.policy import Authority, Enforcement, PolicySet
from engine.request import Operation, Phase
from engine.resource_list import parse
from engine.resource_quota import decode_limited_resources, decode_resource_quota
from tests.builders import container, limit_range, metadata_policy, pod, request, resource_quota

Manifest = dict[str, Any]
SMALL = limit_range({"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"}})
FULL = resource_quota({"pods": "1"}, {"pods": "1"})
REJECT = metadata_policy({"policyAction": {"reject": True}}, strict=True)
BIG = pod(container(requests={"cpu": "2"}, limits={"cpu": "2"}))
LIMITED = {"resource": "pods", "matchContains": ["pods"]}


def native(*manifests: Manifest, **more: Any) -> PolicySet:
    def of(kind: str, decode: Any) -> Any:
        return tuple(decode(m) for m in manifests if m["kind"] == kind)

    kept = {
        "limit_ranges": of("LimitRange", decode_limit_range),
        "metadata_policies": of("MetadataPolicy", decode_metadata_policy),
        "resource_quotas": of("ResourceQuota", decode_resource_quota),
        "authority": Authority.NATIVE,
    }
    return PolicySet(namespace="ns", **{**kept, **more})


def judge(obj: Any, policies: PolicySet, phase: Phase = Phase.VALIDATE, **more: Any) -> Decision:
    return admit(request(obj, **more), policies, phase=phase)


def observed(decision: Decision) -> list[Reason]:
    return [violation.reason for violation in decision.observed]


@pytest.mark.parametrize(
    ("obj", "policy", "reason"),
    [
        pytest.param(BIG, SMALL, Reason.MAX_CONSTRAINT, id="range"),
        pytest.param(pod(), FULL, Reason.EXCEEDED_QUOTA, id="quota"),
        pytest.param(pod(), resource_quota({"cpu": "1"}), Reason.MUST_SPECIFY, id="must-specify"),
        pytest.param(
            pod(),
            FULL | {"status": {"hard": {"pods": "1"}, "used": {}}},
            Reason.STATUS_UNKNOWN,
            id="status-unknown",
        ),
    ],
)
def test_native_range_or_quota_is_observed_and_never_refuses(
    obj: Manifest, policy: Manifest, reason: Reason
) -> None:
    decision = judge(obj, native(policy))
    assert decision.allowed
    assert observed(decision) == [reason]
    assert len(decision.warnings) == 1
    assert judge(obj, native(policy, authority=Authority.PORTAL)).violations[0].reason is reason


def test_native_update_without_its_old_object_is_observed() -> None:
    policies = native(resource_quota({"services": "1"}))
    service = {"metadata": {"name": "s"}, "spec": {"type": "ClusterIP"}}
    decision = judge(service, policies, resource="services", operation=Operation.UPDATE)
    assert decision.allowed
    assert observed(decision) == [Reason.NO_PREVIOUS_USAGE]


def test_native_metadata_policy_refuses_still() -> None:
    decision = judge(BIG, native(SMALL, REJECT))
    assert [v.reason for v in decision.violations] == [Reason.REJECTED_BY_RULE]
    assert observed(decision) == [Reason.MAX_CONSTRAINT]


def test_native_missing_cover_refuses_still_and_charges_nothing() -> None:
    limited = decode_limited_resources([LIMITED])
    services = resource_quota({"services": "1"})
    decision = judge(pod(), native(services, limited_resources=limited))
    assert [v.reason for v in decision.violations] == [Reason.INSUFFICIENT_QUOTA]
    assert decision.charges == ()


def test_native_quota_covers_what_is_limited_although_it_is_full() -> None:
    limited = decode_limited_resources([LIMITED])
    full = resource_quota({"pods": "1", "count/pods": "5"}, {"pods": "1", "count/pods": "1"})
    decision = judge(pod(), native(full, limited_resources=limited))
    assert decision.allowed
    assert observed(decision) == [Reason.EXCEEDED_QUOTA]


def test_native_quota_that_is_full_is_charged_what_the_object_uses() -> None:
    asked = prepare(request(pod()), native(FULL), phase=Phase.VALIDATE)
    decision = asked.decide({"quota": parse({"pods": "7"})})
    assert [dict(charge.delta) for charge in decision.charges] == [parse({"pods": "1"})]
    assert str(decision.used["quota"]["pods"]) == "8"


def test_native_dry_run_is_not_charged() -> None:
    assert judge(pod(), native(FULL), dry_run=True).charges == ()


def test_native_defaults_are_left_to_limit_ranger() -> None:
    decision = judge(pod(), native(SMALL), Phase.MUTATE)
    operations = [each.path for each in decision.patch if "resources" in each.path]
    assert operations == []
    steps = {step.name: step.outcome for step in decision.trace}
    assert steps["LimitRangeDefaults"] is Outcome.SKIPPED


def test_native_mutating_phase_foretells_what_limit_ranger_will_refuse() -> None:
    decision = judge(BIG, native(SMALL, FULL), Phase.MUTATE)
    assert decision.allowed
    assert observed(decision) == [Reason.MAX_CONSTRAINT]
    assert len(decision.warnings) == 1


def test_native_mutating_phase_foretells_nothing_of_quotas_and_of_what_only_watches() -> None:
    [small] = native(SMALL).limit_ranges
    watching = dataclasses.replace(small, enforcement=Enforcement.AUDIT)
    for policies in (native(FULL), native(FULL, limit_ranges=(watching,))):
        decision = judge(BIG, policies, Phase.MUTATE)
        assert decision.allowed
        assert (observed(decision), decision.warnings) == ([], ())


def test_both_phases_at_once_set_what_limit_ranger_would_have_set() -> None:
    assert not judge(pod(), native(SMALL), Phase.BOTH).observed
    defaulted = judge(pod(), native(SMALL), Phase.BOTH).object or {}
    assert defaulted["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m"}


def test_native_template_warns_of_what_its_pods_will_meet() -> None:
    template = {"spec": BIG["spec"], "metadata": {}}
    obj = {"metadata": {"name": "d"}, "spec": {"template": template}}
    decision = judge(obj, native(SMALL), kind="Deployment", resource="deployments.apps")
    assert any(text.startswith("pods of this Deployment") for text in decision.warnings)


def test_native_policy_that_only_watches_stays_out_of_warnings() -> None:
    [full] = native(FULL).resource_quotas
    watching = dataclasses.replace(full, enforcement=Enforcement.AUDIT)
    policies = PolicySet(resource_quotas=(watching,), authority=Authority.NATIVE)
    decision = judge(pod(), policies)
    assert observed(decision) == [Reason.EXCEEDED_QUOTA]
    assert decision.warnings == ()


@pytest.mark.parametrize("authority", list(Authority))
def test_trace_says_so_where_the_api_server_enforces(authority: Authority) -> None:
    decision = judge(pod(), native(FULL, authority=authority))
    assert decision.authority is authority
    assert (decision.trace[0].name == "Authority") is (authority is Authority.NATIVE)
