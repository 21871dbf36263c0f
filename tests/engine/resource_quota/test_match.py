"""What quotas count of an object that is there already."""

from __future__ import annotations

import pytest

from engine.request import GroupVersionResource
from engine.resource_list import to_json
from engine.resource_quota import (
    counted_of,
    decode_resource_quota,
    is_final,
    names_of,
    resources_of,
    unknown_names,
)
from tests.builders import container, pod, resource_quota

PODS = GroupVersionResource(resource="pods")


@pytest.mark.parametrize(
    ("hard", "counted"),
    [
        ("requests.cpu", {"rq": {"requests.cpu": "1"}}),
        ("limits.cpu", {}),
        ("services", {}),
    ],
)
def test_only_what_it_uses_is_counted(hard: str, counted: dict[str, dict[str, str]]) -> None:
    quota = decode_resource_quota(resource_quota({hard: "5"}, name="rq"))
    found = counted_of(pod(container(requests={"cpu": "1"})), PODS, [quota])
    assert {name: to_json(amounts) for name, amounts in found.items()} == counted


@pytest.mark.parametrize(("phase", "ended"), [("Running", False), ("Failed", True)])
def test_only_a_pod_that_has_ended_is_final(phase: str, *, ended: bool) -> None:
    assert is_final({**pod(), "status": {"phase": phase}}, PODS) is ended


def test_only_names_of_the_resource_count_it() -> None:
    quota = decode_resource_quota(resource_quota({"pods": "5", "services": "5"}))
    assert names_of(quota, PODS) == ("pods",)


@pytest.mark.parametrize(
    ("name", "resources"),
    [
        ("requests.cpu", {"pods"}),
        ("configmaps", {"configmaps"}),
        ("count/deployments.apps", {"deployments.apps"}),
        ("requests.storage", {"persistentvolumeclaims"}),
        ("services.nodeports", {"services"}),
        ("count/", set()),
        ("example.com/other", set()),
    ],
)
def test_a_name_tells_what_is_counted_under_it(name: str, resources: set[str]) -> None:
    assert {str(resource) for resource in resources_of([name])} == resources


def test_tracked_names_without_an_amount_are_unknown() -> None:
    hard = {"services": "1", "pods": "1", "example.com/other": "1"}
    quota = decode_resource_quota(resource_quota(hard, {"pods": "0"}))
    assert unknown_names(quota) == ["services"]
