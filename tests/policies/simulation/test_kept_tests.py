"""A test made of an object: it expects what policies answer, and passes under them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import DecodeError
from engine.kept_tests import MOST_BYTES, decode_kept_test, judge_test
from engine.policy_manifests import build_policy_set
from policies.simulation import kept_answer
from tests import factories
from tests.kept_tests import pod

DEFAULTS = factories.manifest(
    "LimitRange",
    {"limits": [{"type": "Container", "default": {"memory": "1Gi"}, "max": {"cpu": "2"}}]},
    name="lr",
)
PODS = factories.manifest("ResourceQuota", {"hard": {"pods": "3"}}, name="rq")


def answer(*policies: dict[str, Any], cpu: Any = "1") -> dict[str, Any]:
    """The spec of the test; it passes under its own policies."""
    policy_set = build_policy_set(list(policies), namespace="team")
    manifest = kept_answer(policy_set, pod(cpu))
    assert judge_test(decode_kept_test(manifest), policy_set).passes
    spec: dict[str, Any] = manifest["spec"]
    return spec


def test_an_admitted_object_expects_its_changes() -> None:
    expected = answer(DEFAULTS)["expect"]
    assert expected["verdict"] == "allow"
    assert any("memory" in each["path"] or "memory" in str(each) for each in expected["patch"])


def test_a_refused_object_expects_its_reasons_and_no_changes() -> None:
    assert answer(DEFAULTS, cpu="3")["expect"] == {"verdict": "deny", "reasons": ["MaxConstraint"]}


def test_what_quotas_use_is_named_where_the_answer_depends_on_it() -> None:
    full = {**PODS, "status": {"hard": {"pods": "3"}, "used": {"pods": "3"}}}
    spec = answer(full)
    assert spec["expect"]["reasons"] == ["ExceededQuota"]
    assert spec["used"] == {"rq": {"pods": "3"}}
    roomy = {**PODS, "status": {"hard": {"pods": "3"}, "used": {"pods": "1"}}}
    assert "used" not in answer(roomy)


def test_a_name_is_suggested() -> None:
    policies = build_policy_set([DEFAULTS], namespace="team")
    assert kept_answer(policies, pod("3"))["metadata"] == {
        "name": "web-is-denied", "namespace": "team",
    }  # fmt: skip
    nameless = {**pod("1"), "metadata": {"generateName": "Web_1-"}}
    assert kept_answer(policies, nameless)["metadata"]["name"] == "web-1-is-allowed"


def test_an_object_that_is_too_large_is_not_kept() -> None:
    policies = build_policy_set([], namespace="team")
    with pytest.raises(DecodeError):
        kept_answer(policies, pod("1", labels={"a": "x" * MOST_BYTES}))
