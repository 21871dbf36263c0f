"""LimitRanges at work: when they act, what they set, what they refuse, and what they say of it."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chain import admit
from engine.decision import Outcome, Reason, Violation
from engine.errors import DecodeError, bracketed
from engine.limit_range import (
    ANNOTATION,
    acts_on,
    check,
    decode_limit_range,
    default_pod_resources,
)
from engine.limit_range.constraints import ratio_text, six_decimals
from engine.pod import default_pod
from engine.policy import Enforcement, LimitRange, PolicySet
from engine.quantity import Quantity
from engine.request import Operation, Phase
from tests.builders import claim, container, limit_range, pod, request

Manifest = dict[str, Any]
SEED = {
    "type": "Container",
    "min": {"cpu": ".1", "memory": "250Mi"},
    "max": {"cpu": "1", "memory": "1Gi"},
    "default": {"cpu": "500m", "memory": "500Mi"},
    "defaultRequest": {"cpu": "250m", "memory": "250Mi"},
    "maxLimitRequestRatio": {"cpu": "4"},
}


def ranged(*items: Manifest, name: str = "limits", **more: Any) -> LimitRange:
    return dataclasses.replace(decode_limit_range(limit_range(*items, name=name)), **more)


def violations(obj: Manifest, *ranges: LimitRange, **more: Any) -> list[Violation]:
    results, _ = check(request(obj, **more), ranges)
    return [violation for _, found in results for violation in found]


def annotation(obj: Manifest) -> str:
    return str(obj["metadata"]["annotations"][ANNOTATION])


# ---- when


DELETING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, True, id="create pod"),
        pytest.param({"operation": Operation.UPDATE}, False, id="update pod"),
        pytest.param({"operation": Operation.UPDATE, "sub_resource": "resize"}, True, id="resize"),
        pytest.param({"operation": Operation.CREATE, "sub_resource": "resize"}, False, id="odd"),
        pytest.param({"operation": Operation.UPDATE, "sub_resource": "status"}, False, id="status"),
        pytest.param({"operation": Operation.CREATE, "sub_resource": "binding"}, False, id="bind"),
        pytest.param({"operation": Operation.DELETE}, False, id="delete"),
        pytest.param({"resource": "persistentvolumeclaims"}, True, id="create claim"),
        pytest.param(
            {"resource": "persistentvolumeclaims", "operation": Operation.UPDATE},
            True,
            id="update claim",
        ),
        pytest.param(
            {
                "resource": "persistentvolumeclaims",
                "operation": Operation.UPDATE,
                "old_object": DELETING,
            },
            False,
            id="claim on its way out",
        ),
        pytest.param(
            {
                "resource": "persistentvolumeclaims",
                "operation": Operation.UPDATE,
                "old_object": {"metadata": None},
            },
            True,
            id="old object of a strange shape",
        ),
        pytest.param({"resource": "deployments.apps"}, False, id="deployment"),
        pytest.param({"resource": "pods.metrics.k8s.io"}, False, id="another group's pods"),
    ],
)
def test_ranges_act_on(more: Manifest, *, expected: bool) -> None:
    assert acts_on(request(pod(), **more)) is expected


def test_a_range_that_is_not_asked_says_so() -> None:
    asked = request(pod(), operation=Operation.UPDATE)
    results, steps = check(asked, [ranged({"type": "Pod", "min": {"cpu": "1"}})])
    assert results == []
    assert [step.outcome for step in steps] == [Outcome.SKIPPED]


# ---- defaults


def test_an_empty_container_takes_everything() -> None:
    changed, operations, steps = default_pod_resources(pod(), [ranged(SEED)])
    assert changed["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "500Mi"},
        "requests": {"cpu": "250m", "memory": "250Mi"},
    }
    text = (
        "LimitRanger plugin set: cpu, memory request for container c; "
        "cpu, memory limit for container c"
    )
    assert annotation(changed) == text
    assert (steps[0].outcome, steps[0].detail) == (Outcome.CHANGED, text)
    assert operations[-1].path == "/metadata/annotations/kubernetes.io~1limit-ranger"


@pytest.mark.parametrize("resources", [None, {}, {"limits": None, "requests": {}}])
def test_the_patch_makes_the_changed_pod(resources: Manifest | None) -> None:
    manifest = pod({"name": "c", "resources": resources}, {"name": "d"}, None)
    before = copy.deepcopy(manifest)
    changed, operations, _ = default_pod_resources(manifest, [ranged(SEED)])
    assert manifest == before
    assert jsonpatch.apply_patch(manifest, [op.to_json() for op in operations]) == changed
    assert changed["spec"]["containers"][2]["resources"]["limits"]["cpu"] == "500m"


def test_zero_counts_as_present() -> None:
    full = {"cpu": "0", "memory": "0"}
    manifest = pod(container("c", requests=full, limits=full))
    changed, operations, steps = default_pod_resources(manifest, [ranged(SEED)])
    assert (changed, operations) == (manifest, [])
    assert steps[0].outcome is Outcome.UNCHANGED


def test_init_containers_follow_and_are_named_so() -> None:
    manifest = pod(container("c", limits={"cpu": "1"}, requests={"cpu": "1"}))
    manifest["spec"]["initContainers"] = [container("i")]
    item = {"type": "Container", "default": {"cpu": "2"}}
    changed, _, _ = default_pod_resources(manifest, [ranged(item)])
    assert annotation(changed) == (
        "LimitRanger plugin set: cpu request for init container i; cpu limit for init container i"
    )


def test_the_first_range_wins_and_the_last_writes_the_annotation() -> None:
    first = ranged({"type": "Container", "default": {"cpu": "1"}}, name="a")
    second = ranged({"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}}, name="b")
    third = ranged({"type": "Container", "default": {"cpu": "3"}}, name="c")
    changed, _, steps = default_pod_resources(pod(), [first, second, third])
    assert changed["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert annotation(changed) == (
        "LimitRanger plugin set: memory request for container c; memory limit for container c"
    )
    outcomes = [Outcome.CHANGED, Outcome.CHANGED, Outcome.UNCHANGED]
    assert [(s.policy.name if s.policy else "", s.outcome) for s in steps] == list(
        zip("abc", outcomes, strict=True)
    )


def test_a_resize_is_not_annotated() -> None:
    changed, operations, _ = default_pod_resources(pod(), [ranged(SEED)], annotate=False)
    assert "annotations" not in changed["metadata"]
    assert len(operations) == 2


@pytest.mark.parametrize("mode", [Enforcement.WARN, Enforcement.AUDIT])
def test_ranges_that_do_not_enforce_set_nothing(mode: Enforcement) -> None:
    changed, operations, steps = default_pod_resources(pod(), [ranged(SEED, enforcement=mode)])
    assert (changed, operations) == (pod(), [])
    assert (steps[0].outcome, steps[0].detail) == (Outcome.SKIPPED, f"sets nothing in {mode} mode")


def test_a_range_without_defaults_does_not_match() -> None:
    _, _, steps = default_pod_resources(pod(), [ranged({"type": "Pod", "max": {"cpu": "1"}})])
    assert [step.outcome for step in steps] == [Outcome.NOT_MATCHED]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [("x", "metadata"), ({"annotations": ["x"]}, "metadata.annotations")],
)
def test_a_pod_that_cannot_carry_the_annotation_is_refused(metadata: Any, field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        default_pod_resources({"metadata": metadata}, [ranged(SEED)])
    assert caught.value.field == field


# ---- the seed's table (semantics 2.8)

RATIO = "cpu max limit to request ratio per Container is 4, but "
TABLE = [
    pytest.param({}, "", id="nothing"),
    pytest.param({"limits": {"cpu": "1"}}, "", id="limit cpu 1"),
    pytest.param(
        {"requests": {"cpu": "100m"}}, RATIO + "provided ratio is 5.000000", id="request cpu 100m"
    ),
    pytest.param({"requests": {"cpu": "125m"}}, "", id="request cpu 125m"),
    pytest.param(
        {"requests": {"cpu": "50m"}, "limits": {"cpu": "50m"}},
        "minimum cpu usage per Container is 100m, but request is 50m",
        id="both 50m",
    ),
    pytest.param(
        {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
        "maximum cpu usage per Container is 1, but limit is 2",
        id="request 500m, limit 2",
    ),
    pytest.param(
        {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}},
        "[maximum cpu usage per Container is 1, but limit is 2, "
        + RATIO
        + "provided ratio is 20.000000]",
        id="request 100m, limit 2",
    ),
    pytest.param(
        {"limits": {"memory": "2Gi"}},
        "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        id="limit memory 2Gi",
    ),
    pytest.param(
        {"limits": {"cpu": "0"}},
        "[minimum cpu usage per Container is 100m, but request is 0, "
        + RATIO
        + "no request is specified or request is 0]",
        id="limit cpu 0",
    ),
]


@pytest.mark.parametrize(("resources", "expected"), TABLE)
def test_the_seeds_example(resources: Manifest, expected: str) -> None:
    manifest = default_pod(pod(container("c", **resources)))
    changed, _, _ = default_pod_resources(manifest, [ranged(SEED)])
    found = violations(default_pod(changed), ranged(SEED))
    assert (bracketed(v.message for v in found) if found else "") == expected


# ---- checks


def asks(requests: Manifest | None, limits: Manifest | None) -> Manifest:
    return pod(container("c", requests=requests or {}, limits=limits or {}))


CHECKS = [
    pytest.param({"min": {"cpu": "1"}}, None, None, "requests", ".  No request is specified"),
    pytest.param({"min": {"cpu": "1"}}, "1", "500m", "limits", ", but limit is 500m"),
    pytest.param({"max": {"cpu": "1"}}, None, None, "limits", ".  No limit is specified"),
    pytest.param({"max": {"cpu": "1"}}, "1001m", "1", "requests", ", but request is 1001m"),
    pytest.param(
        {"maxLimitRequestRatio": {"cpu": "2"}},
        "1",
        "0",
        "limits",
        ", but no limit is specified or limit is 0",
    ),
    pytest.param(
        {"maxLimitRequestRatio": {"cpu": "2"}},
        None,
        "1",
        "requests",
        ", but no request is specified or request is 0",
    ),
]


@pytest.mark.parametrize(("item", "req", "lim", "side", "text"), CHECKS)
def test_each_line_of_each_rule(
    item: Manifest, req: str | None, lim: str | None, side: str, text: str
) -> None:
    manifest = asks(req and {"cpu": req}, lim and {"cpu": lim})
    (found,) = violations(manifest, ranged({"type": "Pod", **item}))
    assert found.message.endswith(text)
    assert found.field == f"spec.containers[*].resources.{side}[cpu]"


def test_equality_passes_everywhere() -> None:
    item = {"min": {"cpu": "1"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "1"}}
    one = {"cpu": "1000m"}
    ranges = [ranged({"type": "Container", **item}, {"type": "Pod", **item})]
    assert violations(asks(one, one), *ranges) == []


def test_a_violation_tells_rule_field_policy_and_numbers() -> None:
    items = ({"type": "Pod"}, {"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}})
    limits = ranged(*items, name="l", revision=7)
    (found,) = violations(asks({"cpu": "1"}, {"cpu": "10"}), limits)
    assert (found.reason, found.rule, found.policy) == (Reason.RATIO_CONSTRAINT, 1, limits.ref)
    assert found.field == "spec.containers[0].resources.limits[cpu]"
    assert found.numbers == {
        "resource": "cpu",
        "enforced": "3",
        "request": "1",
        "limit": "10",
        "ratio": "10.000000",
    }


def test_a_violation_of_the_pods_own_amount_points_there() -> None:
    manifest = asks({"cpu": "1"}, None)
    manifest["spec"]["resources"] = {"limits": {"cpu": "2"}}
    items = {"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}
    found = violations(manifest, ranged(items))
    assert [(v.reason, v.field) for v in found] == [
        (Reason.MIN_CONSTRAINT, "spec.containers[*].resources.requests[cpu]"),
        (Reason.MAX_CONSTRAINT, "spec.resources.limits[cpu]"),
    ]


def test_init_containers_are_checked_after_containers() -> None:
    manifest = pod(container("a"), container("b"))
    manifest["spec"]["initContainers"] = [container("i")]
    found = violations(manifest, ranged({"type": "Container", "max": {"cpu": "1"}}))
    assert [v.field.partition(".resources")[0] for v in found] == [
        "spec.containers[0]",
        "spec.containers[1]",
        "spec.initContainers[0]",
    ]


def test_minima_come_before_maxima_before_ratios_by_name() -> None:
    item = {
        "type": "Container",
        "maxLimitRequestRatio": {"cpu": "1"},
        "max": {"memory": "1", "cpu": "1"},
        "min": {"memory": "1", "cpu": "1"},
    }
    found = violations(pod(), ranged(item))
    assert [(v.reason, v.numbers["resource"]) for v in found] == [
        (Reason.MIN_CONSTRAINT, "cpu"),
        (Reason.MIN_CONSTRAINT, "memory"),
        (Reason.MAX_CONSTRAINT, "cpu"),
        (Reason.MAX_CONSTRAINT, "memory"),
        (Reason.RATIO_CONSTRAINT, "cpu"),
    ]


def test_every_range_reports_apart_whatever_its_enforcement() -> None:
    item = {"type": "Container", "min": {"cpu": "1"}}
    ranges = [ranged(item, name="a"), ranged(item, name="b", enforcement=Enforcement.AUDIT)]
    results, steps = check(
        request(pod()),
        [*ranges, ranged(name="c"), ranged(SEED | {"type": "PersistentVolumeClaim"}, name="d")],
    )
    assert [limits.name for limits, _ in results] == ["a", "b"]
    assert [step.outcome for step in steps] == [
        Outcome.VIOLATED,
        Outcome.VIOLATED,
        Outcome.NOT_MATCHED,
        Outcome.NOT_MATCHED,
    ]


def test_the_trace_names_the_items_that_passed() -> None:
    items = ({"type": "Container", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "1"}})
    one = {"cpu": "1"}
    _, steps = check(request(asks(one, one)), [ranged(*items)])
    assert [(step.rule, step.outcome) for step in steps] == [
        (0, Outcome.PASSED),
        (1, Outcome.PASSED),
    ]


# ---- claims

CLAIM_ITEM = {
    "type": "PersistentVolumeClaim",
    "min": {"storage": "1Gi"},
    "max": {"storage": "2Gi"},
    "maxLimitRequestRatio": {"storage": "1"},
}


@pytest.mark.parametrize(
    ("storage", "texts"),
    [
        pytest.param("1Gi", [], id="at the minimum"),
        pytest.param("2Gi", [], id="at the maximum"),
        pytest.param("1Mi", ["minimum storage usage per {} is 1Gi, but request is 1Mi"], id="low"),
        pytest.param("3Gi", ["maximum storage usage per {} is 2Gi, but request is 3Gi"], id="high"),
        pytest.param(
            None,
            [
                "minimum storage usage per {} is 1Gi.  No request is specified",
                "maximum storage usage per {} is 2Gi.  No request is specified",
            ],
            id="none",
        ),
    ],
)
def test_claims_are_held_against_min_and_max_only(storage: str | None, texts: list[str]) -> None:
    found = violations(
        claim(storage),
        ranged(CLAIM_ITEM),
        resource="persistentvolumeclaims",
        kind="PersistentVolumeClaim",
        operation=Operation.UPDATE,
    )
    assert [v.message for v in found] == [text.format("PersistentVolumeClaim") for text in texts]
    assert {v.field for v in found} <= {"spec.resources.requests[storage]"}


def test_a_request_without_an_object_is_an_empty_one() -> None:
    (found,) = violations(None, ranged(CLAIM_ITEM | {"max": {}}), resource="persistentvolumeclaims")
    assert found.reason is Reason.MIN_CONSTRAINT


# ---- arithmetic


@pytest.mark.parametrize(
    ("req", "lim", "ratio", "shown"),
    [
        pytest.param("100m", "1610m", "16.1", None, id="met exactly"),
        pytest.param("3", "10", "3", "3.333333", id="six decimals"),
        pytest.param("1", "2000001m", "2000", "2000.001000", id="just above"),
        pytest.param("1Ei", "4Ei", "2", "4.000000", id="beyond 64 bits in thousandths"),
        pytest.param("1", "1e99", "2", "+Inf", id="an endless limit"),
        pytest.param("1e99", "3e99", "2", "NaN", id="two endless amounts"),
        pytest.param("1e99", "1", "2", None, id="an endless request"),
        pytest.param("-1", "-3", "2", "3.000000", id="negative amounts"),
    ],
)
def test_the_ratio_is_exact(req: str, lim: str, ratio: str, shown: str | None) -> None:
    item = {"type": "Container", "maxLimitRequestRatio": {"memory": ratio}}
    found = violations(asks({"memory": req}, {"memory": lim}), ranged(item))
    assert [v.numbers["ratio"] for v in found] == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("numerator", "denominator", "text"),
    [
        pytest.param(1, 2_000_000, "0.000000", id="half to even, down"),
        pytest.param(3, 2_000_000, "0.000002", id="half to even, up"),
        pytest.param(2, 3, "0.666667", id="up"),
        pytest.param(1, 3, "0.333333", id="down"),
        pytest.param(-1, 3, "-0.333333", id="negative"),
        pytest.param(1, -3, "-0.333333", id="negative below"),
        pytest.param(0, -3, "0.000000", id="no negative zero"),
        pytest.param(10**40, 1, "1" + "0" * 40 + ".000000", id="large"),
    ],
)
def test_six_decimals(numerator: int, denominator: int, text: str) -> None:
    assert six_decimals(numerator, denominator) == text


@pytest.mark.parametrize(
    ("numerator", "denominator", "text"),
    [
        pytest.param("2", "3", "0.666667", id="small"),
        pytest.param("64Gi", "1500m", "45812984490.666664", id="what a float64 has left"),
        pytest.param("64Gi", "1500000001n", "45812984460.124677", id="finer than thousandths"),
        pytest.param("9223372036854775", "3", "3074457345618258.500000", id="the most"),
        pytest.param("9223372036854776", "3", "3074457345618258.666667", id="beyond"),
    ],
)
def test_a_ratio_is_written_as_servers_do(numerator: str, denominator: str, text: str) -> None:
    amounts = (Quantity.parse(each).nano for each in (numerator, denominator))
    assert ratio_text(*amounts) == text


@given(st.integers(-(10**18), 10**18), st.integers(1, 10**18) | st.integers(-(10**6), -1))
def test_ratios_round_like_float64(numerator: int, denominator: int) -> None:
    text = f"{float(numerator) / float(denominator):.6f}" if numerator else "0.000000"
    assert ratio_text(numerator * 10**6, denominator * 10**6) == text


# ---- pods that no server defaulted


@pytest.mark.parametrize("phase", [Phase.MUTATE, Phase.BOTH])
def test_a_raw_pod_is_defaulted_by_a_patch_that_fits_it(phase: Phase) -> None:
    raw = pod(container("c", limits={"cpu": "1"}), {"name": "d"})
    decision = admit(request(raw), PolicySet(limit_ranges=(ranged(SEED),)), phase=phase)
    patched = jsonpatch.apply_patch(raw, [op.to_json() for op in decision.patch])
    assert patched == decision.object
    assert patched["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "500Mi"},
        "requests": {"cpu": "1", "memory": "250Mi"},
    }


def test_an_item_that_is_kept_passes_beside_one_of_its_type_that_is_broken() -> None:
    strict, wide = (
        decode_limit_range(limit_range({"type": "Container", "max": {"cpu": most}}, name=name))
        for name, most in (("strict", "1"), ("wide", "4"))
    )
    asked = request(pod(container(limits={"cpu": "2"})))
    decision = admit(asked, PolicySet(limit_ranges=(strict, wide)), phase=Phase.VALIDATE)
    steps = [step for step in decision.trace if step.name == "LimitRangeCheck"]
    assert [(step.policy and step.policy.name, step.outcome.value) for step in steps] == [
        ("strict", "violated"),
        ("wide", "passed"),
    ]
