"""Pods in different versions: when their own resources are completed, sums in resizes, QoS."""

from __future__ import annotations

from typing import Any

import pytest

from engine.kubernetes_version import KubernetesVersion
from engine.pod import complete_pod, default_pod, qos_class, quota_totals
from engine.resource_list import to_json
from tests.builders import container, pod

Manifest = dict[str, Any]
OLD, NEW = KubernetesVersion(36), KubernetesVersion(37)
FULL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}


def with_own(own: Manifest, *containers: Manifest, **spec: Any) -> Manifest:
    manifest = pod(*containers)
    return {**manifest, "spec": {**manifest["spec"], "resources": own, **spec}}


def completed(manifest: Manifest, version: KubernetesVersion = NEW) -> Any:
    decoded = default_pod(manifest, version=version)
    return complete_pod(decoded, version)["spec"]["resources"]


# ---- own resources


def test_decoding_completes_own_resources_only_before_1_37() -> None:
    manifest = with_own({"limits": {"cpu": "100u"}}, container())
    old, new = (default_pod(manifest, version=each)["spec"]["resources"] for each in (OLD, NEW))
    assert old == {"limits": {"cpu": "1m"}, "requests": {"cpu": "1m"}}
    assert new == {"limits": {"cpu": "1m"}}


def test_storing_completes_own_resources_only_from_1_37_on() -> None:
    decoded = default_pod(with_own({"limits": {"cpu": "1"}}, container()), version=NEW)
    assert complete_pod(decoded, OLD) is decoded
    assert complete_pod(decoded, NEW)["spec"]["resources"]["requests"] == {"cpu": "1"}
    assert "requests" not in decoded["spec"]["resources"]


@pytest.mark.parametrize("version", [OLD, NEW])
def test_pods_without_own_amounts_stay_as_they_are(version: KubernetesVersion) -> None:
    for manifest in (pod(container(**FULL)), with_own({}, container(**FULL))):
        decoded = default_pod(manifest, version=version)
        assert complete_pod(decoded, version) is decoded


def test_requests_alone_are_completed() -> None:
    manifest = with_own({"requests": {"cpu": "3"}}, container(requests={"memory": "1Gi"}))
    assert completed(manifest)["requests"] == {"cpu": "3", "memory": "1Gi"}
    assert completed(manifest, OLD) == {"requests": {"cpu": "3"}}


@pytest.mark.parametrize(
    ("request_of_pod", "limit"),
    [pytest.param("3", "4", id="the sum"), pytest.param("5", "5", id="the larger request")],
)
def test_a_limit_that_all_containers_have_is_completed(request_of_pod: str, limit: str) -> None:
    half = container("b", **FULL)
    manifest = with_own({"requests": {"cpu": request_of_pod}}, container("a", **FULL), half)
    assert completed(manifest)["limits"] == {"cpu": limit, "memory": "2Gi"}
    assert "limits" not in completed(manifest, OLD)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"initContainers": [container("i")]}, id="an init container has none"),
        pytest.param({"ephemeralContainers": [{"name": "e"}]}, id="ephemeral ones never have"),
        pytest.param({"containers": []}, id="there is no container"),
    ],
)
def test_a_limit_that_some_container_lacks_is_not_completed(spec: Manifest) -> None:
    manifest = with_own({"requests": {"cpu": "3"}}, container(**FULL), **spec)
    assert "limits" not in completed(manifest)


def test_huge_pages_are_completed_before_requests() -> None:
    pages = {"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}
    found = completed(with_own({"limits": {"cpu": "2"}}, container(**pages)))
    assert found["limits"] == {"cpu": "2", "hugepages-2Mi": "4Mi"}
    assert found["requests"] == {"cpu": "1", "hugepages-2Mi": "4Mi"}


# ---- QoS class


@pytest.mark.parametrize(
    ("own", "old", "new"),
    [
        pytest.param({}, "BestEffort", "Burstable", id="empty"),
        pytest.param({"limits": {"x/y": "1"}}, "BestEffort", "Burstable", id="nothing of a pod's"),
        pytest.param({"requests": {"cpu": "0"}}, "BestEffort", "BestEffort", id="zero"),
        pytest.param({"limits": {"hugepages-2Mi": "2Mi"}}, "BestEffort", "BestEffort", id="pages"),
    ],
)
def test_own_resources_that_state_nothing_leave_the_class(own: Any, old: str, new: str) -> None:
    manifest = with_own(own, container(requests={"cpu": "1"}))
    assert (qos_class(manifest, OLD), qos_class(manifest, NEW)) == (old, new)


# ---- resizes


def running(*statuses: Manifest, infeasible: bool = False, **spec: Any) -> Manifest:
    manifest = pod(
        container("a", requests={"cpu": "1"}, limits={"cpu": "1"}),
        container("b", requests={"cpu": "3"}, limits={"cpu": "3"}),
    )
    pending = [{"type": "PodResizePending", "reason": "Infeasible"}] if infeasible else []
    status = {"containerStatuses": list(statuses), "conditions": pending}
    return {**manifest, "spec": {**manifest["spec"], **spec}, "status": status}


def reported(name: str, cpu: str, limit: str = "", allocated: str = "") -> Manifest:
    sides = {"requests": {"cpu": cpu}} if cpu else {}
    sides |= {"limits": {"cpu": limit}} if limit else {}
    found: Manifest = {"name": name}
    found |= {"resources": sides} if sides else {}
    return found | ({"allocatedResources": {"cpu": allocated}} if allocated else {})


@pytest.mark.parametrize(
    ("manifest", "old", "new"),
    [
        pytest.param(
            running(reported("a", "2", "2"), reported("b", "1", "1")),
            ("5", "5"),
            ("4", "4"),
            id="one grows, the other shrinks",
        ),
        pytest.param(
            running(reported("a", "", allocated="5"), reported("b", "", allocated="1")),
            ("4", "4"),
            ("6", "4"),
            id="only granted",
        ),
        pytest.param(running(reported("a", "2", "2")), ("5", "5"), ("5", "5"), id="one reports"),
        pytest.param(
            running(reported("a", "2", "2"), infeasible=True),
            ("5", "5"),
            ("2", "2"),
            id="infeasible, where the other reports nothing",
        ),
        pytest.param(running(), ("4", "4"), ("4", "4"), id="none reports"),
    ],
)
def test_resizes_are_summed_up(
    manifest: Manifest, old: tuple[str, str], new: tuple[str, str]
) -> None:
    for version, expected in ((OLD, old), (NEW, new)):
        totals = quota_totals(manifest, version=version)
        found = (to_json(totals.requests)["cpu"], to_json(totals.limits)["cpu"])
        assert found == expected, version


def test_init_containers_report_from_1_37_on() -> None:
    init = container("i", requests={"cpu": "1"})
    manifest = running(initContainers=[init])
    manifest["status"]["initContainerStatuses"] = [reported("i", "9")]
    found = [to_json(quota_totals(manifest, version=each).requests) for each in (OLD, NEW)]
    assert found == [{"cpu": "4"}, {"cpu": "9"}]


def test_own_amounts_and_overhead_count_in_a_resize() -> None:
    own = {"requests": {"cpu": "7"}}
    manifest = running(reported("a", "2"), resources=own, overhead={"cpu": "1"})
    assert to_json(quota_totals(manifest, version=NEW).requests) == {"cpu": "8"}
