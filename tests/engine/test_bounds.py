"""What a decision keeps of very many violations: the first ones, a bounded text, their number."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest

from admission.wire.review import render_response
from engine.bounds import LONGEST_MESSAGE, MOST_VIOLATIONS, TooLongError, shortened
from engine.chain import admit, denial
from engine.decision import Decision, Reason
from engine.errors import ErrorType, FieldError, bracketed
from engine.limit_range import decode_limit_range
from engine.policy import Authority, Enforcement, LimitRange, PolicySet
from engine.request import Phase
from tests.builders import container, limit_range, pod, request

Manifest = dict[str, Any]


def range_of(number: int, *, most: str = "1", least: str = "50Mi") -> LimitRange:
    item = {"type": "Container", "max": {"cpu": most}, "min": {"memory": least}}
    return decode_limit_range(limit_range(item, name=f"range-{number:02}"))


def pod_of(number: int, *, step: int = 1) -> Manifest:
    """Each container breaks both bounds of ``range_of``; each amount of cpu is another."""
    containers = [
        container(
            f"c{each}",
            requests={"cpu": "1", "memory": "1Mi"},
            limits={"cpu": f"{2000 + step * each}m"},
        )
        for each in range(number)
    ]
    return pod(*containers)


def judged(obj: Manifest, *ranges: LimitRange, **more: Any) -> Decision:
    return admit(request(obj), PolicySet(limit_ranges=ranges, **more), phase=Phase.VALIDATE)


def texts_one_by_one(obj: Manifest, *ranges: LimitRange) -> list[str]:
    """Ask for each container alone: range by range, container by container."""
    texts = []
    for each in ranges:
        for one in obj["spec"]["containers"]:
            texts += [v.message for v in judged(pod(one), each).violations]
    return texts


@pytest.mark.parametrize("containers", [MOST_VIOLATIONS // 2, MOST_VIOLATIONS // 2 + 1, 90])
def test_a_message_below_its_bound_has_all_texts_in_order(containers: int) -> None:
    obj, ranges = pod_of(containers), (range_of(1), range_of(2, most="1500m"))
    texts = texts_one_by_one(obj, *ranges)
    decision = judged(obj, *ranges)
    assert decision.message.endswith(bracketed(texts))
    assert len(decision.message) < LONGEST_MESSAGE
    assert [v.message for v in decision.violations] == texts[:MOST_VIOLATIONS]
    assert sum(decision.more_violations.values()) == len(texts) - len(decision.violations)


def test_of_very_many_the_first_are_listed_and_the_rest_is_counted_by_reason() -> None:
    obj, ranges = pod_of(700), tuple(map(range_of, range(8)))
    decision = judged(obj, *ranges)
    total = 2 * 700 * 8
    assert len(decision.violations) == MOST_VIOLATIONS
    assert sum(decision.more_violations.values()) == total - MOST_VIOLATIONS
    kept = sum(v.reason is Reason.MIN_CONSTRAINT for v in decision.violations)
    assert decision.more_violations[Reason.MIN_CONSTRAINT] == total // 2 - kept


def test_a_longer_message_ends_after_a_whole_text_and_says_that_there_is_more() -> None:
    obj, ranges = pod_of(700), (range_of(1),)
    decision = judged(obj, *ranges)
    whole = decision.message.partition("forbidden: ")[2]
    expected = bracketed(texts_one_by_one(obj, *ranges))
    assert whole.endswith(", and more]")
    assert expected.startswith(whole.removesuffix("and more]"))
    assert LONGEST_MESSAGE - 200 < len(whole.encode()) < LONGEST_MESSAGE + 20


def test_equal_amounts_are_found_once_and_counted_all() -> None:
    obj, ranges = pod_of(3000, step=0), tuple(map(range_of, range(32)))
    decision = judged(obj, *ranges)
    assert decision.message.endswith(bracketed(texts_one_by_one(pod_of(1), *ranges)))
    assert sum(decision.more_violations.values()) == 2 * 3000 * 32 - MOST_VIOLATIONS


def test_the_trace_has_a_step_for_each_item_and_none_is_long() -> None:
    ranges = tuple(map(range_of, range(32)))
    decision = judged(pod_of(700), *ranges)
    steps = [step for step in decision.trace if step.name == "LimitRangeCheck"]
    assert [step.policy for step in steps] == [each.ref for each in ranges]
    assert {step.outcome for step in steps} == {"violated"}
    assert max(len(step.detail) for step in steps) < 2100


@pytest.mark.parametrize("how", [{"authority": Authority.NATIVE}, {}])
def test_what_is_only_observed_is_bounded_alike(how: dict[str, Any]) -> None:
    mode = Enforcement.ENFORCE if how else Enforcement.WARN
    manifest = limit_range({"type": "Container", "max": {"cpu": "1"}}, name="watching")
    watching = dataclasses.replace(decode_limit_range(manifest), enforcement=mode)
    decision = judged(pod_of(700), watching, **how)
    assert decision.allowed
    assert len(decision.observed) == MOST_VIOLATIONS
    assert sum(decision.more_observed.values()) == 700 - MOST_VIOLATIONS
    assert len(decision.warnings) == MOST_VIOLATIONS + 1


def wrong_pod(number: int) -> Manifest:
    """Each container asks for more than its own limit, which the API server refuses."""
    return pod(
        *[container(f"c{n}", requests={"cpu": "2"}, limits={"cpu": "1"}) for n in range(number)]
    )


@pytest.mark.parametrize("containers", [20, 120])
def test_causes_below_the_bound_name_everything(containers: int) -> None:
    decision = judged(wrong_pod(containers))
    answer = render_response(decision, "u", phase=Phase.VALIDATE, decision_id="d", external_url="")[
        "response"
    ]
    *causes, last = answer["status"]["details"]["causes"]
    assert last["reason"] == "Decision"
    assert [each["field"] for each in causes] == [
        f"spec.containers[{n}].resources.requests" for n in range(containers)
    ]


def test_causes_above_the_bound_say_how_many_are_left() -> None:
    decision = judged(wrong_pod(2000))
    answer = render_response(decision, "u", phase=Phase.VALIDATE, decision_id="d", external_url="")[
        "response"
    ]
    *causes, more, last = answer["status"]["details"]["causes"]
    assert (more["reason"], more["message"]) == ("More", f"and more: {2000 - len(causes)}")
    assert last["reason"] == "Decision"
    assert len(decision.violations) == MOST_VIOLATIONS
    assert sum(decision.more_violations.values()) == 2000 - MOST_VIOLATIONS
    assert answer["auditAnnotations"]["violations-not-listed"] == "1950"


def wrong(number: int, detail: str = "no") -> FieldError:
    return FieldError(ErrorType.INVALID, f"spec.field{number}", "x", detail)


def test_an_error_that_comes_again_is_counted_and_not_listed_twice() -> None:
    found = denial.invalid([*map(wrong, range(MOST_VIOLATIONS)), wrong(0), wrong(0), wrong(99)])
    assert len(found.kept) == MOST_VIOLATIONS + 1
    assert found.more == {Reason.INVALID_OBJECT: 2}


def test_long_causes_end_before_the_bound() -> None:
    found = denial.invalid(wrong(number, "long " * 200) for number in range(30))
    decision = denial.refused(judged(pod()), request(pod()), found.kept, found.more)
    assert 10 < len(decision.causes) < 30
    assert sum(len(field) + len(text) for field, text in decision.causes) <= LONGEST_MESSAGE
    assert len(decision.violations) == 30


def test_a_pause_that_ends_the_judgement_makes_a_denial_that_names_the_bound() -> None:
    def give_up() -> None:
        raise TooLongError

    asked = request(pod_of(3), pause=give_up)
    decision = admit(asked, PolicySet(limit_ranges=(range_of(1),)), phase=Phase.VALIDATE)
    assert not decision.allowed
    assert [v.reason for v in decision.violations] == [Reason.REVIEW_TOO_LONG]
    assert "longer than 4 s" in decision.message


class Impatient:
    """A pause that gives up at the third call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls > 2:
            raise TooLongError


@pytest.mark.parametrize("phase", [Phase.MUTATE, Phase.VALIDATE, Phase.BOTH])
@pytest.mark.parametrize("mode", list(Enforcement))
def test_long_work_of_every_phase_and_mode_can_be_ended(phase: Phase, mode: Enforcement) -> None:
    item = {"type": "Container", "max": {"cpu": "1"}, "default": {"memory": "1Gi"}}
    made = [decode_limit_range(limit_range(item, name=f"r{n}")) for n in range(3)]
    ranges = tuple(dataclasses.replace(each, enforcement=mode) for each in made)
    pause = Impatient()
    asked = request(pod_of(600), pause=pause)
    decision = admit(asked, PolicySet(limit_ranges=ranges), phase=phase)
    is_ended = Reason.REVIEW_TOO_LONG in [each.reason for each in decision.violations]
    assert is_ended == (pause.calls > 2)
    assert is_ended or (phase is Phase.MUTATE and mode is not Enforcement.ENFORCE)


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("abc", 3, "abc"),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…"),
        ("ääää", 6, "ä…"),
        ("abc", 2, "…"),
    ],
)
def test_a_text_is_cut_to_its_bytes(text: str, most: int, short: str) -> None:
    assert shortened(text, most) == short


def test_counting_of_very_many_may_be_ended() -> None:
    callers = set()

    def pause() -> None:
        callers.add(sys._getframe(1).f_code.co_name)

    asked = dataclasses.replace(request(pod_of(700)), pause=pause)
    policies = PolicySet(namespace="ns", limit_ranges=tuple(map(range_of, range(8))))
    decision = admit(asked, policies, phase=Phase.VALIDATE)
    assert sum(decision.more_violations.values()) == 2 * 700 * 8 - MOST_VIOLATIONS
    assert {"_with_pauses", "_count"} <= callers
