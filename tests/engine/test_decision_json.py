"""Decisions as JSON: what was found, by which policy, and the numbers."""

from __future__ import annotations

from engine.chain import admit
from engine.decision_json import render_decision, render_step
from engine.limit_range import decode_limit_range
from engine.policy import PolicySet
from engine.request import Phase
from engine.resource_quota import decode_resource_quota
from tests.builders import container, limit_range, pod, request, resource_quota

LIMITS = {"kind": "LimitRange", "name": "limits"}


def policies_with(**item: dict[str, str]) -> PolicySet:
    """A range with one item, and a quota of five pods, two of them used."""
    ranges = limit_range({"type": "Container", **item})
    quota = resource_quota({"pods": "5"}, {"pods": "2"})
    return PolicySet(
        namespace="ns",
        limit_ranges=(decode_limit_range(ranges),),
        resource_quotas=(decode_resource_quota(quota),),
    )


def test_a_refusal_is_rendered_with_its_violation_and_its_step() -> None:
    policies = policies_with(max={"cpu": "1"})
    asked = request(pod(container(limits={"cpu": "2"})))
    decision = admit(asked, policies, phase=Phase.VALIDATE)
    rendered = render_decision(decision)
    assert (rendered["allowed"], rendered["code"]) == (False, 403)
    [violation] = rendered["violations"]
    assert violation["policy"] == LIMITS
    assert violation["field"] == "spec.containers[0].resources.limits[cpu]"
    steps = [render_step(step) for step in decision.trace]
    [broken] = [step for step in steps if step["outcome"] == "violated"]
    assert broken["policy"] == LIMITS
    assert all(value not in (None, "", {}) for step in steps for value in step.values())


def test_an_admitted_object_is_rendered_with_its_change_and_the_used_amounts() -> None:
    policies = policies_with(default={"cpu": "500m"})
    rendered = render_decision(admit(request(pod()), policies, phase=Phase.MUTATE))
    assert rendered["allowed"]
    assert {operation["op"] for operation in rendered["patch"]} == {"add"}
    validated = admit(request(pod()), policies, phase=Phase.VALIDATE)
    assert render_decision(validated)["used"] == {"quota": {"pods": "3"}}
