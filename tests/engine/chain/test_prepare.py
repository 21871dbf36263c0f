"""A prepared request: which quotas it asks about, and what it makes of the amounts it is told."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.chain import Prepared, admit, prepare
from engine.decision import Outcome
from engine.policy import PolicySet
from engine.request import Operation, Phase
from engine.resource_list import parse
from engine.resource_quota import decode_resource_quota
from tests.builders import Manifest, container, limit_range, pod, request, resource_quota


def quotas(*manifests: Manifest, **more: Any) -> PolicySet:
    return PolicySet(
        namespace="ns", resource_quotas=tuple(map(decode_resource_quota, manifests)), **more
    )


def quota(name: str, hard: Manifest, **more: Any) -> Manifest:
    return resource_quota(hard, name=name, **more) | {"metadata": {"name": name}}


def prepared(obj: Any, policy_set: PolicySet, **more: Any) -> Prepared:
    return prepare(request(obj, **more), policy_set, phase=more.pop("phase", Phase.VALIDATE))


def resize(cpu: str, **old: Any) -> dict[str, Any]:
    before = pod(container(requests={"cpu": cpu}), **old)
    return {"operation": Operation.UPDATE, "sub_resource": "resize", "old_object": before}


ASKING = container(requests={"cpu": "1"})


def test_amounts_given_decide_in_place_of_the_policy_sets_own() -> None:
    asked = prepared(pod(), quotas(quota("a", {"pods": "2"})))
    assert asked.quotas == ("a",)
    assert asked.decide().allowed
    assert not asked.decide({"a": parse({"pods": "2"})}).allowed
    decision = asked.decide({"a": parse({"pods": "1"})})
    assert str(decision.used["a"]["pods"]) == "2"
    assert [step.numbers for step in decision.trace][-1] == {"pods": "1 + 1 of 2"}


def test_only_quotas_that_something_is_asked_of_are_named_in_order() -> None:
    manifests = [
        quota("cpu", {"cpu": "4"}),
        quota("other", {"services": "1"}),
        quota("best-effort", {"pods": "1"}, scopes=["BestEffort"]),
        quota("pods", {"pods": "1"}),
    ]
    assert prepared(pod(ASKING), quotas(*manifests)).quotas == ("cpu", "pods")


def test_name_that_a_quota_does_not_track_stays_unknown_whatever_is_given() -> None:
    computing = quota("q", {"pods": "2"})
    computing["status"]["used"] = {}
    asked = prepared(pod(), quotas(computing))
    assert asked.quotas == ()
    assert [str(v.reason) for v in asked.decide({"q": parse({"pods": "0"})}).violations] == [
        "StatusUnknown"
    ]


def test_name_that_is_not_given_keeps_its_own_amount() -> None:
    policies = quotas(quota("q", {"pods": "2", "cpu": "2"}))
    used = prepared(pod(ASKING), policies).decide({"q": parse({"cpu": "1"})}).used["q"]
    assert {name: str(amount) for name, amount in used.items()} == {"pods": "1", "cpu": "2"}


def test_mutating_asks_no_quota() -> None:
    asked = prepare(request(pod()), quotas(quota("q", {"pods": "1"})), phase=Phase.MUTATE)
    assert (asked.quotas, asked.before) == ((), {})


def test_update_says_what_the_quota_counted_before() -> None:
    policies = quotas(quota("q", {"cpu": "4", "memory": "1Gi"}))
    after = pod(container(requests={"cpu": "3", "memory": "1"}))
    asked = prepared(after, policies, **resize("2", resourceVersion="1"))
    assert {name: str(amount) for name, amount in asked.before["q"].items()} == {"cpu": "2"}
    charge = asked.decide({"q": parse({"cpu": "2", "memory": "0"})}).charges[0]
    assert str(charge.delta["cpu"]) == "1"


@pytest.mark.parametrize(
    ("more", "scopes"),
    [
        pytest.param({}, [], id="create"),
        pytest.param(resize("2"), [], id="never-stored"),
        pytest.param(
            resize("0", resourceVersion="1"), ["NotBestEffort"], id="quota-did-not-mean-it"
        ),
    ],
)
def test_nothing_was_counted_before(more: dict[str, Any], scopes: list[str]) -> None:
    policies = quotas(quota("q", {"cpu": "4"}, scopes=scopes))
    assert prepared(pod(ASKING), policies, **more).before == {"q": {}}


def test_old_object_that_cannot_be_read_refuses_and_asks_nobody() -> None:
    asked = prepared(
        pod(ASKING), quotas(quota("q", {"cpu": "4"})), **resize("x", resourceVersion="1")
    )
    assert (asked.quotas, asked.decide().code) == ((), 400)


def test_template_asks_the_quotas_of_its_pods() -> None:
    deployment = {"metadata": {"name": "d"}, "spec": {"template": {"spec": pod()["spec"]}}}
    policies = quotas(quota("own", {"count/deployments.apps": "1"}), quota("pods", {"pods": "1"}))
    asked = prepared(deployment, policies, kind="Deployment", resource="deployments.apps")
    assert (asked.quotas, asked.before) == (("own", "pods"), {"own": {}, "pods": {}})
    assert asked.decide().warnings == ()
    (warning,) = asked.decide({"pods": parse({"pods": "1"})}).warnings
    assert "exceeded quota: pods" in warning


def test_written_policy_is_counted_by_the_amounts_given() -> None:
    policies = quotas(quota("q", {"count/limitranges": "1"}))
    asked = prepared(limit_range(), policies, kind="LimitRange", resource="limitranges")
    assert asked.quotas == ("q",)
    assert asked.decide().allowed
    assert not asked.decide({"q": parse({"count/limitranges": "1"})}).allowed


def test_refusal_leaves_the_amounts_given() -> None:
    policies = quotas(quota("a", {"pods": "1"}), quota("b", {"pods": "5"}))
    full = {"a": parse({"pods": "1"}), "b": parse({"pods": "2"})}
    decision = prepared(pod(), policies).decide(full)
    assert {name: str(used["pods"]) for name, used in decision.used.items()} == {"a": "1", "b": "2"}
    assert [step.outcome for step in decision.trace[-2:]] == [Outcome.VIOLATED, Outcome.PASSED]


def test_deciding_twice_gives_the_same_and_admits_nothing_by_itself() -> None:
    policies = quotas(quota("q", {"pods": "1"}))
    asked = prepared(pod(), policies)
    assert asked.decide() == asked.decide() == admit(request(pod()), policies, phase=Phase.VALIDATE)
    own = dataclasses.replace(policies.resource_quotas[0], used=parse({"pods": "1"}))
    full = dataclasses.replace(policies, resource_quotas=(own,))
    expected = admit(request(pod()), full, phase=Phase.VALIDATE)
    assert asked.decide({"q": own.used}) == expected
