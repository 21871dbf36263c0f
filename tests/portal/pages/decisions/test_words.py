"""Rows of the log in few words: reasons by their numbers, patches, service accounts."""

from __future__ import annotations

from typing import Any

import pytest

from admission.models import AuditEvent, Verdict
from portal.pages.decisions.words import LONGEST, patch_words, short_reason, short_user

LIMITS = {"kind": "LimitRange", "namespace": "team", "name": "limits", "revision": 2}


def violation(reason: str, message: str = "", **numbers: str) -> dict[str, Any]:
    return {"reason": reason, "message": message, "policy": LIMITS, "rule": 0, "numbers": numbers}


def denied(*violations: dict[str, Any], **fields: Any) -> AuditEvent:
    return AuditEvent(verdict=Verdict.DENIED, violations=list(violations), **fields)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            violation(
                "MaxConstraint", "maximum memory usage per Container is 2Gi, but limit is 4Gi",
                resource="memory", enforced="2Gi", request="1Gi", limit="4Gi",
            ),
            "limits: memory 4Gi > max 2Gi",
        ),
        (
            violation(
                "MaxConstraint", "maximum memory usage per Container is 2Gi, but request is 3Gi",
                resource="memory", enforced="2Gi", request="3Gi", limit="4Gi",
            ),
            "limits: memory 3Gi > max 2Gi",
        ),
        (
            violation(
                "MinConstraint", "minimum cpu usage per Container is 50m, but request is 10m",
                resource="cpu", enforced="50m", request="10m", limit="500m",
            ),
            "limits: cpu 10m < min 50m",
        ),
        (
            violation(
                "MaxConstraint", "maximum cpu usage per Container is 2.  No limit is specified",
                resource="cpu", enforced="2",
            ),
            "limits: cpu limit is not set",
        ),
        (
            violation(
                "MaxLimitRequestRatioConstraint", "...",
                resource="cpu", enforced="4", request="100m", limit="1", ratio="10.000000",
            ),
            "limits: cpu limit / request 10 > 4",
        ),
        (
            violation("ExceededQuota", "...", resource="pods", requested="1", used="20", hard="20"),
            "limits: pods 20 + 1 > 20",
        ),
        (violation("MustSpecify", "...", resource="limits.cpu"), "limits: limits.cpu is not set"),
        (
            violation("RejectedByRule", "rejected by MetadataPolicy team/limits rule 0"),
            "limits: rejected by rule 0",
        ),
        (violation("MaxConstraint", "in other words"), "limits: in other words"),
        ({"reason": "MaxConstraint", "message": "bare"}, "bare"),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_violation_by_its_numbers(found: dict[str, Any], words: str) -> None:
    assert short_reason(denied(found)) == words


def test_further_violations_are_counted() -> None:
    rejected = violation("RejectedByRule", "no")
    assert short_reason(denied(rejected, rejected, more_violations=3)) == "limits: no, +4"


def test_a_denial_without_violations_has_its_message() -> None:
    assert short_reason(denied(message="too long", reason="Forbidden")) == "too long"
    assert short_reason(denied(reason="Forbidden")) == "Forbidden"


def test_what_audit_found_is_a_reason_too() -> None:
    event = AuditEvent(verdict=Verdict.ALLOWED, observed=[violation("RejectedByRule", "no")])
    assert short_reason(event) == "limits: no"


def test_no_reason_is_longer_than_a_row() -> None:
    assert len(short_reason(denied(violation("RejectedByRule", "x" * 9000)))) == LONGEST


@pytest.mark.parametrize(
    ("warnings", "words"), [([], ""), (["a"], "1 warning"), (["a", "b"], "2 warnings")]
)
def test_an_admitted_request_has_its_changes_or_its_warnings(
    warnings: list[str], words: str
) -> None:
    assert short_reason(AuditEvent(verdict=Verdict.ALLOWED, warnings=warnings)) == words
    patch = [
        {"op": "add", "path": f"/spec/containers/{number}/resources/limits/{name}", "value": "1"}
        for number in range(2)
        for name in ("cpu", "memory", "storage")
    ]
    event = AuditEvent(verdict=Verdict.MUTATED, patch=patch, warnings=warnings)
    assert short_reason(event) == "limits.cpu set, limits.memory set, +1"


@pytest.mark.parametrize(
    ("op", "path", "value", "words"),
    [
        ("add", "/metadata/labels", {"team": "a", "tier": "b"},
         ["label team added", "label tier added"]),
        ("add", "/metadata/labels", {}, []),
        ("replace", "/metadata/labels/example.com~1team", "a", ["label example.com/team changed"]),
        ("remove", "/metadata/annotations/a~0b", None, ["annotation a~b removed"]),
        ("add", "/metadata/annotations/kubernetes.io~1limit-ranger", "set", []),
        ("add", "/spec/resources", {"limits": {"cpu": "1"}, "requests": {"memory": "1"}},
         ["limits.cpu set", "requests.memory set"]),
        ("add", "/spec/containers/0/resources/limits", {"cpu": "1"}, ["limits.cpu set"]),
        ("replace", "/spec/priorityClassName", "high", ["priorityClassName changed"]),
        ("add", "", {}, []),
    ],
)  # fmt: skip
def test_a_patch_in_words(op: str, path: str, value: Any, words: list[str]) -> None:
    assert patch_words([{"op": op, "path": path, "value": value}]) == words


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ("system:serviceaccount:kube-system:replicaset-controller", "replicaset-controller"),
        ("system:serviceaccount:team:", "system:serviceaccount:team:"),
        ("system:node:worker-1", "system:node:worker-1"),
        ("ada", "ada"),
        ("", ""),
    ],
)
def test_a_service_account_by_its_name(user: str, shown: str) -> None:
    assert short_user(user) == shown
