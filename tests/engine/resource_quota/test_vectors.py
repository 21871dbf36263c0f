"""The shared quota vectors: Kubernetes' own cases, read where the folder is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine import resource_list, resource_quota
from engine.errors import DecodeError, bracketed
from engine.pod import default_claim, default_pod
from engine.request import GroupVersionResource, Operation
from engine.wire import loads
from tests.builders import request

if TYPE_CHECKING:
    from engine.resource_quota import QuotaResult
    from engine.selector import ScopeSelectorRequirement

FOLDER = Path(__file__).parents[4] / "shared" / "vectors"
PODS = GroupVersionResource(resource="pods")
TYPES = {"Required value": "Required", "Invalid value": "Invalid"}

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="../shared/vectors is not there")


def read(name: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{name}.json"
    cases = loads(path.read_bytes()) if path.exists() else []
    return [case for case in cases if not case.get("uncertain")]


def of(name: str, group: str | None = None) -> Any:
    cases = [case for case in read(name) if group is None or case.get("group", "") == group]
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def scope(shape: dict[str, Any]) -> ScopeSelectorRequirement:
    quota = {"spec": {"scopeSelector": {"matchExpressions": [shape]}}}
    return (resource_quota.decode_resource_quota(quota).scope_selector or ())[0]


def check_validation(manifest: Any, expected: dict[str, Any]) -> None:
    if expected.get("decodes") is False:
        with pytest.raises(DecodeError) as caught:
            resource_quota.decode_resource_quota(manifest)
        assert caught.value.detail == expected["decodeError"]
        return
    quota = resource_quota.decode_resource_quota(manifest)
    errors = resource_quota.validate_resource_quota(quota)
    found = {(error.field, TYPES[error.type.value], error.detail) for error in errors}
    assert found == {(e["field"], e["type"], e["detail"]) for e in expected["errors"]}


@of("quota_validation")
def test_quota_is_validated(case: dict[str, Any]) -> None:
    check_validation(case["manifest"], case)


@of("corpus_quota_oracle")
def test_quota_of_the_corpus_is_validated(case: dict[str, Any]) -> None:
    check_validation(case["manifest"], case["expected"])


@of("corpus_quota_oracle")
def test_quota_of_the_corpus_is_written_again(case: dict[str, Any]) -> None:
    if not case["expected"]["decodes"]:
        pytest.skip("unreadable")
    quota = resource_quota.decode_resource_quota(case["manifest"])
    spec = resource_quota.encode_resource_quota(quota)["spec"]
    normalized = case["expected"]["normalized"].get("spec", {})
    assert {key: value for key, value in spec.items() if value} == normalized


def resource_of(case: dict[str, Any]) -> str:
    return ".".join(filter(None, (case["resource"], case.get("group", ""))))


def admit(case: dict[str, Any]) -> QuotaResult:
    namespace = case.get("namespace", "default")
    asked = request(
        case["object"],
        resource=resource_of(case),
        operation=Operation(case["operation"]),
        old_object=case["oldObject"],
        sub_resource=case.get("subresource", ""),
        dry_run=case.get("dryRun", False),
        namespace=namespace,
    )
    quotas = [
        resource_quota.decode_resource_quota(quota)
        for quota in case["quotas"]
        if quota["metadata"]["namespace"] == namespace
    ]
    limited = resource_quota.decode_limited_resources(case["limitedResources"])
    return resource_quota.evaluate(asked, quotas, limited)


@of("quota_admission")
def test_request_is_held_against_quotas(case: dict[str, Any]) -> None:
    result = admit(case)
    expected = case["expected"]
    messages = [violation.message for violation in result.violations]
    assert not messages if expected["allowed"] else messages
    if not expected["allowed"]:
        assert all(part in messages[0] for part in expected["errorSubstrings"])
        assert expected["fullError"].endswith(messages[0])
    namespace = case["namespace"]
    for name, used in result.used.items():
        assert resource_list.to_json(used) == expected["newUsed"][f"{namespace}/{name}"]


@of("quota_admission_oracle")
def test_request_on_the_corpus_is_held_against_quotas(case: dict[str, Any]) -> None:
    default = {"pods": default_pod, "persistentvolumeclaims": default_claim}.get(case["resource"])
    states = {key: case[key] for key in ("object", "oldObject") if case[key]}
    defaulted = {key: default(obj) for key, obj in states.items()} if default else {}
    result = admit({**case, **defaulted})
    expected = case["expected"]
    assert bool(result.violations) is not expected["allowed"]
    if not expected["allowed"]:
        message = result.violations[0].message
        assert all(part in message for part in expected["errorSubstrings"])
        return
    for name, used in result.used.items():
        amounts = resource_list.parse(expected["newUsed"][name] or {})
        assert resource_list.equals(used, amounts)


def usage(case: dict[str, Any], kind: str, resource: str) -> dict[str, str]:
    used = resource_quota.usage_of(
        case[kind], GroupVersionResource(resource=resource), now=case.get("now")
    )
    return resource_list.to_json(used)


@of("quota_pod_usage", "")
def test_pod_usage(case: dict[str, Any]) -> None:
    assert usage(case, "pod", "pods") == case["usage"]


@of("service_usage", "")
def test_service_usage(case: dict[str, Any]) -> None:
    assert usage(case, "service", "services") == case["usage"]


@of("pvc_usage", "")
def test_claim_usage(case: dict[str, Any]) -> None:
    assert usage(case, "claim", "persistentvolumeclaims") == case["usage"]


@of("quota_pod_usage", "constraints")
def test_pod_has_to_specify(case: dict[str, Any]) -> None:
    missing = resource_quota.missing_names(case["pod"], case["requiredResources"])
    assert (resource_quota.must_specify_text(missing) if missing else None) == case["error"]


@of("quota_pod_usage", "usageStats")
def test_pods_in_scope_are_summed(case: dict[str, Any]) -> None:
    spec = {"scopes": case["scopes"], "scopeSelector": case["scopeSelector"]}
    wanted = resource_quota.scope_requirements(resource_quota.decode_resource_quota({"spec": spec}))
    total: dict[str, Any] = {}
    for pod in case["pods"]:
        test = resource_quota.scope_test(PODS, pod)
        if resource_quota.matching_scopes(test, wanted) == wanted:
            total = resource_list.add(total, resource_quota.usage_of(pod, PODS))
    expected = resource_list.parse(case["usage"])
    assert resource_list.equals(resource_list.remove_zeros(total), expected)


@of("service_usage", "constraints")
def test_services_need_not_specify(case: dict[str, Any]) -> None:
    service = resource_quota.decode_resource_quota(
        {"spec": {"hard": dict.fromkeys(case["requiredResources"], "5")}}
    )
    asked = request(case["service"], kind="Service", resource="services")
    assert resource_quota.evaluate(asked, [service], []).violations == ()
    assert case["error"] is None


@pytest.mark.parametrize(
    ("file", "resource"), [("service_usage", "services"), ("pvc_usage", "persistentvolumeclaims")]
)
def test_names_are_tracked(file: str, resource: str) -> None:
    for case in read(file):
        if case.get("group") == "matchingResources":
            kind = GroupVersionResource(resource=resource)
            tracked = list(resource_quota.evaluator_of(kind).tracked(case["resources"]))
            assert tracked == sorted(case["matched"]), case["name"]


@of("quota_scope_match", "podScope")
def test_pod_is_held_against_a_scope(case: dict[str, Any]) -> None:
    requirement = scope(case["selector"])
    test = resource_quota.scope_test(PODS, case["pod"])
    if case.get("error"):
        with pytest.raises(resource_quota.ScopeError) as caught:
            resource_quota.matching_scopes(test, [requirement])
        assert str(caught.value) == case["error"]
        return
    found = resource_quota.matching_scopes(test, [requirement])
    assert bool(found) is case["matches"]


@of("quota_scope_match", "matchingScopes")
def test_scopes_match_one_by_one(case: dict[str, Any]) -> None:
    test = resource_quota.scope_test(PODS, case["pod"])
    found = resource_quota.matching_scopes(test, [scope(shape) for shape in case["selectors"]])
    assert found == tuple(scope(shape) for shape in case["matched"])


@of("quota_scope_match", "uncoveredScopes")
def test_scopes_are_covered_by_name(case: dict[str, Any]) -> None:
    limited = [scope(shape) for shape in case["limitedScopes"]]
    covered = [scope(shape) for shape in case["matchedQuotaScopes"]]
    expected = tuple(scope(shape) for shape in case["uncovered"])
    assert resource_quota.uncovered_scopes(limited, covered) == expected


@of("quota_scope_match", "quotaMatches")
def test_quota_matches_an_object(case: dict[str, Any]) -> None:
    quota = resource_quota.decode_resource_quota(case["quota"])
    kind = GroupVersionResource(resource=case["resource"])
    match = resource_quota.match_quota(
        quota, resource_quota.QuotaSubject.of(kind, case["object"], None)
    )
    assert match.is_matched is case["matches"]


@of("quota_config")
def test_configuration_is_read(case: dict[str, Any]) -> None:
    if not case["valid"] and case.get("errorFields", []) == []:
        with pytest.raises(DecodeError) as caught:
            resource_quota.decode_quota_configuration(case["configuration"])
        assert caught.value.detail == case["error"]
        return
    entries = resource_quota.decode_quota_configuration(case["configuration"])
    errors = resource_quota.validate_limited_resources(entries)
    theirs = [str(error) for error in errors if "matchScopes" not in error.field]
    assert (bracketed(theirs) if theirs else None) == case["error"]
    for entry, shape in zip(entries, case.get("limitedResources", entries), strict=True):
        if isinstance(shape, dict):
            assert resource_quota.encode_limited_resource(entry) == strip(shape)


def strip(shape: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shape.items() if value}


ARITHMETIC = {
    "Equals": resource_list.equals,
    "Add": resource_list.add,
    "Subtract": resource_list.subtract,
    "Max": resource_list.max_of,
    "IsZero": resource_list.is_zero,
    "RemoveZeros": resource_list.remove_zeros,
    "SubtractWithNonNegativeResult": resource_list.subtract_with_non_negative_result,
}


def test_arithmetic_of_quotas() -> None:
    for case in read("quota_arithmetic"):
        function = ARITHMETIC.get(case["function"])
        if function is None:
            continue
        result = function(*(resource_list.parse(value) for value in case["args"]))
        wanted = case["result"]
        same = (
            result is wanted if isinstance(wanted, bool) else result == resource_list.parse(wanted)
        )
        assert same, case["name"]


@of("corpus_pod_oracle")
def test_usage_of_a_pod_of_the_corpus(case: dict[str, Any]) -> None:
    expected = case["expected"].get("usage")
    if expected is None:
        pytest.skip("the pod is not one")
    used = resource_quota.usage_of(default_pod(case["pod"]), PODS)
    assert resource_list.to_json(used) == expected
