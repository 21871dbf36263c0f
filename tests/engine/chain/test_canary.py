"""The canary: which dry runs it is, that it is always refused, and that nobody gains by it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.chain import CANARY_ANNOTATION, admit, canary_message
from engine.decision import Decision, Reason
from engine.limit_range import decode_limit_range
from engine.policy import Authority, PolicySet
from engine.request import Operation, Phase
from tests.builders import container, limit_range, pod, request


def judge(word: Any = "abc", *, phase: Phase = Phase.VALIDATE, **more: Any) -> Decision:
    obj = more.pop("obj", None) or pod(annotations={CANARY_ANNOTATION: word})
    policies = PolicySet(namespace="ns", authority=more.pop("authority", Authority.PORTAL))
    return admit(request(obj, **{"dry_run": True, **more}), policies, phase=phase)


@pytest.mark.parametrize("authority", list(Authority))
def test_canary_is_refused_and_repeats_its_word(authority: Authority) -> None:
    decision = judge(authority=authority)
    assert [violation.reason for violation in decision.violations] == [Reason.CANARY]
    assert decision.code == 403
    assert canary_message("abc", mutated=False) in decision.message
    assert decision.charges == ()


def test_canary_tells_whether_the_mutating_pass_saw_it() -> None:
    marked = judge(phase=Phase.MUTATE)
    assert marked.allowed
    refused = judge(obj=marked.object)
    assert canary_message("abc", mutated=True) in refused.message


@pytest.mark.parametrize("word", ["<script>", "x" * 65, "two words", "ä"])
def test_strange_word_is_not_repeated(word: str) -> None:
    assert word not in judge(word).message


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"dry_run": False}, id="meant"),
        pytest.param({"operation": Operation.UPDATE, "old_object": pod()}, id="update"),
        pytest.param({"sub_resource": "status"}, id="subresource"),
        pytest.param({"resource": "services", "kind": "Service"}, id="other-kind"),
        pytest.param({"word": 1}, id="no-text"),
    ],
)
def test_any_other_request_is_judged_as_if_the_annotation_were_not_there(
    more: dict[str, Any],
) -> None:
    assert judge(**more).allowed


def test_annotation_spares_a_pod_that_is_meant_no_policy() -> None:
    small = limit_range({"type": "Container", "max": {"cpu": "1"}})
    big = pod(container(limits={"cpu": "2"}), annotations={CANARY_ANNOTATION: "abc"})
    policies = PolicySet(limit_ranges=(decode_limit_range(small),))
    decision = admit(request(big), policies, phase=Phase.BOTH)
    assert [violation.reason for violation in decision.violations] == [Reason.MAX_CONSTRAINT]
