"""QoS classes beyond the shared vectors: the pod's own resources, zeros, what does not count."""

from __future__ import annotations

from typing import Any

import pytest

from engine.pod import QOSClass, qos_class, read_pod
from tests.builders import container, pod

BOTH = {"cpu": "1", "memory": "1Gi"}
SET = container("a", requests=BOTH, limits=BOTH)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(None, QOSClass.GUARANTEED, id="none: containers decide"),
        pytest.param({}, QOSClass.BEST_EFFORT, id="empty: containers are ignored"),
        pytest.param({"limits": BOTH, "requests": BOTH}, QOSClass.GUARANTEED, id="both equal"),
        pytest.param({"requests": BOTH}, QOSClass.BURSTABLE, id="requests only"),
        pytest.param(
            {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            QOSClass.BURSTABLE,
            id="limits without memory",
        ),
        pytest.param(
            {"limits": BOTH, "requests": {"cpu": "1"}}, QOSClass.BURSTABLE, id="fewer requests"
        ),
    ],
)
def test_own_resources_decide_when_there_are_any(own: Any, expected: QOSClass) -> None:
    manifest = pod(SET)
    manifest["spec"]["resources"] = own
    assert qos_class(manifest) is expected


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        pytest.param({"cpu": "0"}, {"cpu": "1"}, QOSClass.BURSTABLE, id="zero is no request"),
        pytest.param({"cpu": "0"}, {"cpu": "0"}, QOSClass.BEST_EFFORT, id="zeros are nothing"),
        pytest.param({"gpu": "1"}, {"gpu": "1"}, QOSClass.BEST_EFFORT, id="others do not count"),
        pytest.param({"cpu": "-1"}, {}, QOSClass.BEST_EFFORT, id="nor do negative ones"),
        pytest.param(
            {"cpu": "1000m", "memory": "1024Mi"}, BOTH, QOSClass.GUARANTEED, id="equal by value"
        ),
        pytest.param(
            {"cpu": "500m", "memory": "1Gi"}, BOTH, QOSClass.BURSTABLE, id="request below limit"
        ),
    ],
)
def test_containers_decide(
    requests: dict[str, str], limits: dict[str, str], expected: QOSClass
) -> None:
    manifest = pod(container("a", requests=requests, limits=limits))
    assert qos_class(read_pod(manifest)) is expected


def test_sums_may_match_where_containers_do_not() -> None:
    low = container("a", requests={"cpu": "1", "memory": "1"}, limits={"cpu": "2", "memory": "1"})
    high = container("b", requests={"cpu": "2", "memory": "1"}, limits={"cpu": "1", "memory": "1"})
    assert qos_class(pod(low, high)) is QOSClass.GUARANTEED


def test_init_containers_count_and_ephemeral_ones_do_not() -> None:
    manifest = pod(SET)
    manifest["spec"]["ephemeralContainers"] = [container("e", requests={"cpu": "1"})]
    assert qos_class(manifest) is QOSClass.GUARANTEED
    manifest["spec"]["initContainers"] = [container("i")]
    assert qos_class(manifest) is QOSClass.BURSTABLE


def test_status_is_never_believed() -> None:
    manifest = pod(SET) | {"status": {"qosClass": "BestEffort"}}
    assert qos_class(manifest) is QOSClass.GUARANTEED
