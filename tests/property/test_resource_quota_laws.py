"""Laws of quotas, whatever the amounts: nothing is admitted beyond a limit, nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.request import Operation
from engine.resource_list import less_than_or_equal, mask
from engine.resource_quota import (
    decode_resource_quota,
    encode_resource_quota,
    evaluate,
    evaluator_of,
    usage_of,
    validate_resource_quota,
)
from tests.builders import container, pod, request

pytestmark = pytest.mark.no_cover  # thousands of cases: tracing each line of them takes minutes
AMOUNT = st.builds(
    "{}{}".format, st.integers(0, 2000), st.sampled_from(["", "m", "k", "Mi", "Gi", "e3"])
)
NAMES = ["cpu", "memory", "requests.cpu", "limits.memory", "pods", "count/pods", "services"]
HARD = st.dictionaries(st.sampled_from(NAMES), AMOUNT, min_size=1)
SIDE = st.fixed_dictionaries({"cpu": AMOUNT, "memory": AMOUNT})
CONTAINERS = st.lists(
    st.builds(lambda r, m: container(requests=r, limits=m), SIDE, SIDE), min_size=1, max_size=3
)
PODS = st.builds(lambda containers: pod(*containers), CONTAINERS)


def quota(hard: dict[str, str], used: dict[str, str] | None = None) -> Any:
    amounts = {name: (used or {}).get(name, "0") for name in hard}
    return decode_resource_quota(
        {
            "metadata": {"name": "q"},
            "spec": {"hard": hard},
            "status": {"hard": hard, "used": amounts},
        }
    )


@given(HARD, HARD, PODS)
def test_what_grows_never_ends_above_its_limit(hard: Any, used: Any, obj: Any) -> None:
    bounded = quota(hard, used)
    for charge in (result := evaluate(request(obj), [bounded], [])).charges:
        total = result.used["q"]
        assert less_than_or_equal(mask(total, charge.delta), bounded.hard)[0]
        for name in bounded.used:
            growth = charge.delta[name].nano if name in charge.delta else 0
            assert total[name].nano == bounded.used[name].nano + growth


@given(HARD, PODS)
def test_refused_request_charges_nothing(hard: Any, obj: Any) -> None:
    bounded = quota(hard)
    result = evaluate(request(obj), [bounded], [])
    if result.violations:
        assert result.charges == ()
        assert result.used["q"] == bounded.used


@given(HARD, PODS, PODS)
def test_resize_costs_no_more_than_a_new_pod(hard: Any, before: Any, after: Any) -> None:
    before["metadata"]["resourceVersion"] = "1"
    asked = request(after, operation=Operation.UPDATE, sub_resource="resize", old_object=before)
    resized = {
        name: quantity.nano
        for charge in evaluate(asked, [quota(hard)], []).charges
        for name, quantity in charge.delta.items()
    }
    whole = usage_of(after, asked.resource)
    assert all(0 < growth <= whole[name].nano for name, growth in resized.items())


@given(PODS)
def test_everything_a_pod_uses_is_tracked(obj: Any) -> None:
    resource = request(obj).resource
    usage = usage_of(obj, resource)
    assert list(evaluator_of(resource).tracked(usage)) == sorted(usage)


@given(HARD)
def test_written_quota_reads_the_same(hard: Any) -> None:
    first = decode_resource_quota({"metadata": {"name": "q"}, "spec": {"hard": hard}})
    second = decode_resource_quota(encode_resource_quota(first))
    assert second.spec_hard == first.spec_hard
    assert validate_resource_quota(second) == validate_resource_quota(first)
