"""The shared LimitRange vectors: Kubernetes' own cases, read where the folder is there.

Quantities in ``expectedExact`` cases stand as they are; everything else is what a server does,
API defaulting included.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import DecodeError, invalid_message
from engine.limit_range import (
    ANNOTATION,
    acts_on,
    check,
    decode_limit_range,
    default_item,
    default_pod_resources,
    encode_limit_range,
    validate_limit_range,
)
from engine.pod import default_pod, validate_resources
from engine.policy import LimitRange, LimitRangeItem
from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)
from engine.resource_list import parse
from engine.wire import loads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.decision import Violation

FOLDER = Path(__file__).parents[4] / "shared" / "vectors"
LISTS = {
    "max": "max",
    "min": "min",
    "default": "default",
    "defaultRequest": "default_request",
    "maxLimitRequestRatio": "max_limit_request_ratio",
}


def read(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    return loads(path.read_text()) if path.exists() else []


def each(cases: Iterable[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in cases])


VALIDATION = read("limitrange_validation.json")
DEFAULTING = [
    case for case in read("limitrange_defaulting.json") if case["group"] == "limitRangeItem"
]
ADMISSION = read("limitrange_admission.json")
CORPUS = read("corpus_limitrange_oracle.json")
CORPUS_ADMISSION = read("corpus_limitrange_admission_oracle.json")

pytestmark = pytest.mark.skipif(not ADMISSION, reason="../shared/vectors is not there")


def as_they_stand(manifest: dict[str, Any]) -> LimitRange:
    """The range without API defaulting and rounding, as upstream's unit tests make it."""
    items = tuple(
        LimitRangeItem(
            type=entry["type"],
            **{name: parse(entry.get(key) or {}) for key, name in LISTS.items()},
        )
        for entry in manifest["spec"]["limits"] or []
    )
    decoded = decode_limit_range(manifest)
    return dataclasses.replace(decoded, items=items)


def request_of(case: dict[str, Any], obj: dict[str, Any] | None = None) -> AdmissionRequest:
    return AdmissionRequest(
        kind=GroupVersionKind(kind=case["object"]["kind"]),
        resource=GroupVersionResource(resource=case["resource"]),
        sub_resource=case.get("subresource") or "",
        operation=Operation(case["operation"]),
        object=obj or case["object"],
        old_object=case.get("oldObject"),
    )


def found(errors: Any) -> list[tuple[str, str, str]]:
    return sorted((e.field, e.type.name, e.detail) for e in errors)


def expected(errors: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((e["field"], e["type"].upper(), e["detail"]) for e in errors)


@each(case for case in VALIDATION if case.get("decodes", True))
def test_object_is_validated(case: dict[str, Any]) -> None:
    defaulted = decode_limit_range(case["manifest"])
    judged = defaulted if case.get("apiDefaulted") else as_they_stand(case["manifest"])
    errors = validate_limit_range(judged, needs_namespace=True)
    assert found(errors) == expected(case["errors"])
    if "errorsWithApiDefaulting" in case:
        errors = validate_limit_range(defaulted, needs_namespace=True)
        assert found(errors) == expected(case["errorsWithApiDefaulting"])


@each(case for case in VALIDATION if not case.get("decodes", True))
def test_unreadable_object_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_limit_range(case["manifest"])
    assert caught.value.detail == case["decodeError"]


@each(DEFAULTING)
def test_item_is_defaulted(case: dict[str, Any]) -> None:
    manifest = {"metadata": {"name": "lr"}, "spec": {"limits": [case["input"]]}}
    limit_range = decode_limit_range(manifest)
    assert encode_limit_range(limit_range)["spec"]["limits"] == [case["output"]]
    assert tuple(map(default_item, limit_range.items)) == limit_range.items
    if "validationErrors" in case:
        fields = {error.field for error in validate_limit_range(limit_range)}
        assert fields == set(case["validationErrors"])


@each(CORPUS)
def test_manifest_of_the_corpus_is_judged(case: dict[str, Any]) -> None:
    want = case["expected"]
    if not want["decodes"]:
        with pytest.raises(DecodeError) as caught:
            decode_limit_range(case["manifest"])
        assert caught.value.detail == want["decodeError"]
        return
    limit_range = decode_limit_range(case["manifest"])
    assert found(validate_limit_range(limit_range)) == expected(want["errors"])
    encoded = encode_limit_range(limit_range)
    # Go writes no items as null.
    assert encoded["spec"]["limits"] == (want["normalized"]["spec"]["limits"] or [])
    assert encoded["metadata"].get("name") == want["normalized"]["metadata"].get("name")


def of_phase(case: dict[str, Any], *phases: str | None) -> bool:
    return case.get("phase") in phases


@each(
    case
    for case in ADMISSION
    if of_phase(case, None, "admit (mutate)")
    and "objectAfter" in case["expected"]
    and case["resource"] == "pods"
)
def test_pod_is_mutated_as_it_stands(case: dict[str, Any]) -> None:
    ranges = [as_they_stand(manifest) for manifest in case["limitRanges"]]
    changed, _, _ = default_pod_resources(case["object"], ranges)
    want = case["expected"]["objectAfter"]
    if case.get("uncertain"):
        # Upstream's test shares one map between two containers, which no decoded pod does, and so
        # misses a part of the annotation; the rest of the object is compared.
        changed["metadata"].pop("annotations")
    assert stored(changed) == stored(want)


def stored(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod without what no server stores: containers' empty maps of resources."""
    spec = dict(pod["spec"])
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [
                {**c, "resources": {k: v for k, v in (c.get("resources") or {}).items() if v}}
                for c in spec[group]
            ]
    return {**pod, "spec": spec}


@each(case for case in ADMISSION if case["expected"]["allowed"] is not None)
def test_verdict_on_objects_as_they_stand(case: dict[str, Any]) -> None:
    want = case.get("expectedExact", case["expected"])
    ranges = [as_they_stand(manifest) for manifest in case["limitRanges"]]
    obj = case["expected"].get("objectAfter", case["object"])
    violated = () if of_phase(case, "admit (mutate)") else check(request_of(case, obj), ranges)[0]
    assert (not violated) is want["allowed"]
    texts = " ".join(v.message for _, violations in violated for v in violations)
    assert all(part in texts for part in want["errorSubstrings"])


SERVED = [case for case in ADMISSION if "expectedWithApiDefaulting" in case] + CORPUS_ADMISSION
REFUSED = [case for case in SERVED if case.get("serverRejects", "").startswith("422 Pod")]


def as_served(case: dict[str, Any], ranges: list[LimitRange]) -> dict[str, Any]:
    """The object as a server stores it: defaulted, mutated, defaulted again."""
    obj = case["object"]
    if case["resource"] != "pods":
        return obj
    obj = default_pod(obj)
    if acts_on(request_of(case)):
        obj = default_pod(default_pod_resources(obj, ranges)[0])
    return obj


@each(case for case in SERVED if case["resource"] == "pods")
def test_server_mutates(case: dict[str, Any]) -> None:
    want = case.get("expectedWithApiDefaulting", case["expected"])
    obj = as_served(case, [decode_limit_range(manifest) for manifest in case["limitRanges"]])
    annotations = obj["metadata"].get("annotations") or {}
    assert annotations.get(ANNOTATION) == want["annotation"]
    assert containers(obj, "containers") == want["containers"]
    assert containers(obj, "initContainers") == want["initContainers"]


@each(case for case in SERVED if case not in REFUSED and not of_phase(case, "admit (mutate)"))
def test_server_judges(case: dict[str, Any]) -> None:
    want = case.get("expectedWithApiDefaulting", case["expected"])
    ranges = [decode_limit_range(manifest) for manifest in case["limitRanges"]]
    results, _ = check(request_of(case, as_served(case, ranges)), ranges)
    violated = {limit_range.ref: texts(violations) for limit_range, violations in results}
    expected_texts = [sorted(set(messages)) for messages in want["errorsByLimitRange"]]
    assert [violated.get(limit_range.ref, []) for limit_range in ranges] == expected_texts
    assert (not violated) is want["allowed"]


@each(REFUSED)
def test_server_refuses_before_ranges_are_asked(case: dict[str, Any]) -> None:
    ranges = [decode_limit_range(manifest) for manifest in case["limitRanges"]]
    errors = validate_resources(as_served(case, ranges))
    text = invalid_message("Pod", case["object"]["metadata"]["name"], errors)
    assert f"422 {text}" == case["serverRejects"]


def texts(violations: tuple[Violation, ...]) -> list[str]:
    return sorted({violation.message for violation in violations})


def containers(pod: dict[str, Any], group: str) -> list[dict[str, Any]]:
    entries = stored(pod)["spec"].get(group) or []
    return [{"name": entry["name"], "resources": entry["resources"]} for entry in entries]


@each(case for case in VALIDATION if case.get("verified") and not case["valid"])
def test_refusal_reads_like_the_servers(case: dict[str, Any]) -> None:
    if not case.get("decodes", True):
        pytest.skip("refused while decoding")
    errors = validate_limit_range(decode_limit_range(case["manifest"]))
    text = invalid_message("LimitRange", case["manifest"]["metadata"]["name"], errors)
    assert text.startswith(f'LimitRange "{case["manifest"]["metadata"]["name"]}" is invalid: ')
    assert text.count("[spec.limits") == (len({str(e) for e in errors}) > 1)
