"""The shared vectors about a pod's resources, read where the folder is there.

What a server's own validation and defaulting make of real manifests and of Kubernetes' unit tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.errors import DecodeError, FieldPath
from engine.pod import (
    default_pod,
    qos_class,
    quota_totals,
    validate_requirements,
    validate_resources,
)
from engine.pod.read import read_requirements
from engine.resource_list import to_json
from engine.wire import loads

FOLDER = Path(__file__).parents[4] / "shared" / "vectors"


def read(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    return loads(path.read_text()) if path.exists() else []


CORPUS = read("corpus_pod_oracle.json")
READABLE = [case for case in CORPUS if case["expected"]["decodes"]]
UNREADABLE = [case for case in CORPUS if not case["expected"]["decodes"]]
REQUIREMENTS = read("resource_requirements_validation.json")
FROM_LIMITS = [
    case for case in read("limitrange_defaulting.json") if case["group"] == "podRequestsFromLimits"
]

pytestmark = pytest.mark.skipif(not CORPUS, reason="../shared/vectors is not there")


def each(cases: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def stored(pod: dict[str, Any], group: str) -> list[dict[str, Any]]:
    """Name and resources of each container; empty maps are not stored."""
    return [
        {
            "name": entry["name"],
            "resources": {k: v for k, v in (entry.get("resources") or {}).items() if v},
        }
        for entry in pod["spec"].get(group) or []
    ]


@each(READABLE)
def test_pod_of_the_corpus_is_defaulted(case: dict[str, Any]) -> None:
    pod = default_pod(case["pod"])
    assert stored(pod, "containers") == case["expected"]["containers"]
    assert stored(pod, "initContainers") == case["expected"]["initContainers"]


@each(READABLE)
def test_pod_of_the_corpus_is_classified(case: dict[str, Any]) -> None:
    assert qos_class(default_pod(case["pod"])) == case["expected"]["qos"]


@each(READABLE)
def test_pod_of_the_corpus_is_summed_up(case: dict[str, Any]) -> None:
    totals, usage = quota_totals(default_pod(case["pod"])), case["expected"]["usage"]
    counted = {"cpu", "memory", "ephemeral-storage"}
    for side, amounts in (("requests", totals.requests), ("limits", totals.limits)):
        expected = {name: usage.get(f"{side}.{name}") for name in counted}
        assert {name: to_json(amounts).get(name) for name in counted} == expected


@each(READABLE)
def test_pod_of_the_corpus_is_validated(case: dict[str, Any]) -> None:
    errors = validate_resources(default_pod(case["pod"]))
    assert bool(errors) is bool(case["expected"]["resourceErrors"])


@each(UNREADABLE)
def test_pod_that_no_server_reads_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as caught:
        default_pod(case["pod"])
    assert caught.value.detail == case["expected"]["decodeError"]


@each(REQUIREMENTS)
def test_requirements_are_validated(case: dict[str, Any]) -> None:
    requests, limits = read_requirements(case["resources"], "resources", "resources")
    errors = validate_requirements(requests, limits, FieldPath(case["fieldPath"]))
    found = sorted((error.field, error.type.name, error.detail) for error in errors)
    expected = [(e["field"], e["type"].upper(), e["detail"]) for e in case["errors"]]
    assert found == sorted(expected)


@each(FROM_LIMITS)
def test_requests_are_copied_from_limits(case: dict[str, Any]) -> None:
    assert default_pod({"spec": case["input"]})["spec"] == case["output"]
