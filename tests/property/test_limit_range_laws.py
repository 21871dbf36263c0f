"""Laws of LimitRanges: what any pod and any valid range must obey."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.errors import DecodeError
from engine.limit_range import (
    check,
    decode_limit_range,
    default_item,
    default_pod_resources,
    encode_limit_range,
    validate_limit_range,
)
from engine.pod import (
    default_claim,
    default_pod,
    qos_class,
    quota_totals,
    validate_resources,
)
from engine.wire import RawNumber
from tests.builders import claim, container, limit_range, pod, request

pytestmark = pytest.mark.no_cover  # thousands of cases: tracing each line of them takes minutes
AMOUNTS = st.sampled_from(
    ["0", "1m", "100m", "250m", "0.5", "1", "1500m", "2", "100u", "1e3", "64Mi", "1Gi", "1.5Gi"]
)
LISTS = st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage"]), AMOUNTS)
RESOURCES = st.none() | st.fixed_dictionaries(
    {}, optional={"requests": st.none() | LISTS, "limits": st.none() | LISTS}
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc"), "image": st.just("i")},
        optional={"resources": RESOURCES, "restartPolicy": st.sampled_from(["Always"])},
    ),
    max_size=3,
)
FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
ITEMS = st.fixed_dictionaries({"type": st.just("Container")}, optional=dict.fromkeys(FIELDS, LISTS))


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    manifest = pod()
    manifest["metadata"] |= draw(st.sampled_from([{}, {"annotations": None}, {"labels": {}}]))
    manifest["spec"] = draw(
        st.fixed_dictionaries(
            {"containers": CONTAINERS},
            optional={"initContainers": CONTAINERS, "resources": RESOURCES, "overhead": LISTS},
        )
    )
    return manifest


def as_json(operations: list[Any]) -> list[dict[str, Any]]:
    return [operation.to_json() for operation in operations]


ATOMS = st.sampled_from([None, True, "", "x", "1", RawNumber("1"), RawNumber("-1e999")])
JUNK = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["cpu", "name", "limits", "resources"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)


@st.composite
def spoilt(draw: st.DrawFn, whole: Any) -> Any:
    """The object with junk somewhere in it."""
    if not isinstance(whole, dict | list) or not whole or draw(st.booleans()):
        return draw(JUNK)
    keys = list(whole) if isinstance(whole, dict) else range(len(whole))
    key = draw(st.sampled_from(keys))
    changed = whole.copy()
    changed[key] = draw(spoilt(whole[key]))
    return changed


RUNNING = {
    "containerStatuses": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
    "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
}
FULL = pod(container("c", limits={"cpu": "1"}), annotations={"a": "b"}) | {"status": RUNNING}
FULL["spec"] |= {"resources": {"limits": {"cpu": "2"}}, "overhead": {"cpu": "1m"}}
FULL["spec"]["initContainers"] = [container("i", requests={"memory": "1Gi"})]
RANGE = {"type": "Pod", "max": {"cpu": "1"}}, {"type": "Container", "default": {"cpu": "1"}}


@given(spoilt(FULL))
def test_a_spoilt_pod_is_read_or_refused(manifest: Any) -> None:
    assume(isinstance(manifest, dict))
    ranges = [decode_limit_range(limit_range(*RANGE))]
    for use in (
        default_pod,
        lambda m: default_pod_resources(m, ranges),
        lambda m: check(request(m), ranges),
        quota_totals,
        qos_class,
        validate_resources,
    ):
        with contextlib.suppress(DecodeError):
            use(manifest)


@given(spoilt(limit_range(*RANGE)))
def test_a_spoilt_range_is_read_or_refused(manifest: Any) -> None:
    assume(isinstance(manifest, dict))
    with contextlib.suppress(DecodeError):
        validate_limit_range(decode_limit_range(manifest))


@given(spoilt(claim() | {"status": {"capacity": {"storage": "1Gi"}}}))
def test_a_spoilt_claim_is_read_or_refused(manifest: Any) -> None:
    assume(isinstance(manifest, dict))
    asked = request(manifest, resource="persistentvolumeclaims")
    ranges = [decode_limit_range(limit_range({"type": "PersistentVolumeClaim"}))]
    for use in (default_claim, lambda _: check(asked, ranges)):
        with contextlib.suppress(DecodeError):
            use(manifest)


@given(pods())
def test_api_defaulting_is_idempotent(manifest: dict[str, Any]) -> None:
    before = copy.deepcopy(manifest)
    once = default_pod(manifest)
    assert default_pod(once) == once
    assert manifest == before


@given(pods(), ITEMS, ITEMS)
def test_setting_defaults_twice_sets_them_once(
    manifest: dict[str, Any], one: dict[str, Any], two: dict[str, Any]
) -> None:
    ranges = [decode_limit_range(limit_range(item)) for item in (one, two)]
    changed, _, _ = default_pod_resources(manifest, ranges)
    again, operations, _ = default_pod_resources(changed, ranges)
    assert (again, operations) == (changed, [])


@given(pods(), ITEMS)
def test_the_patch_makes_exactly_the_change(manifest: dict[str, Any], item: dict[str, Any]) -> None:
    before = copy.deepcopy(manifest)
    changed, operations, _ = default_pod_resources(
        manifest, [decode_limit_range(limit_range(item))]
    )
    assert manifest == before
    assert jsonpatch.apply_patch(manifest, as_json(operations)) == changed


@given(pods(), ITEMS)
def test_what_a_pod_asked_for_is_kept(manifest: dict[str, Any], item: dict[str, Any]) -> None:
    changed, _, _ = default_pod_resources(manifest, [decode_limit_range(limit_range(item))])
    for group in ("containers", "initContainers"):
        pairs = zip(manifest["spec"].get(group, []), changed["spec"].get(group, []), strict=True)
        for asked, got in pairs:
            for side, amounts in (asked.get("resources") or {}).items():
                assert (amounts or {}).items() <= (got["resources"][side] or {}).items()


@given(st.lists(st.sampled_from("abc"), max_size=3, unique=True), ITEMS)
def test_a_pod_of_defaults_only_passes_the_range_that_made_it(
    names: list[str], item: dict[str, Any]
) -> None:
    """A valid range never refuses its own defaults, if they are there for all that it checks."""
    limits = decode_limit_range(limit_range(item))
    assume(not validate_limit_range(limits))
    entry = limits.items[0]
    assume({*entry.min, *entry.max, *entry.max_limit_request_ratio} <= {*entry.default_request})
    assume({*entry.max, *entry.max_limit_request_ratio} <= {*entry.default})
    changed, _, _ = default_pod_resources(pod(*[{"name": name} for name in names]), [limits])
    results, _ = check(request(changed), [limits])
    reasons = {v.reason for _, violations in results for v in violations}
    assert reasons <= {"MaxLimitRequestRatioConstraint"}
    assert not [error for error in validate_resources(changed) if "limit of" in error.detail]


@given(ITEMS)
def test_defaulting_and_writing_a_range_change_nothing_more(item: dict[str, Any]) -> None:
    decoded = decode_limit_range(limit_range(item))
    assert decode_limit_range(encode_limit_range(decoded)) == decoded
    assert tuple(map(default_item, decoded.items)) == decoded.items
