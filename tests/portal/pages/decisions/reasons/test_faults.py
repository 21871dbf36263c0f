"""Who decided, in one sentence; violations in words, with the bar of the quota."""

from __future__ import annotations

from typing import Any

import pytest

from admission.models import AuditEvent
from portal.pages.decisions.reasons.amounts import RoomBar, amount_of, charged_amounts
from portal.pages.decisions.reasons.faults import faults_of, headline

QUOTA = {"kind": "ResourceQuota", "namespace": "team", "name": "compute", "revision": 1}
LIMITS = {"kind": "LimitRange", "namespace": "team", "name": "limits", "revision": 1}


def exceeded(resource: str, used: str, requested: str, hard: str) -> dict[str, Any]:
    numbers = {"resource": resource, "used": used, "requested": requested, "hard": hard}
    return {
        "reason": "ExceededQuota", "field": "spec", "message": "exceeded quota: compute, ...",
        "policy": QUOTA, "rule": None, "numbers": numbers,
    }  # fmt: skip


def above(message: str = "maximum cpu is 1, but limit is 2") -> dict[str, Any]:
    return {
        "reason": "MaxConstraint", "field": "spec", "message": message,
        "policy": LIMITS, "rule": 0, "numbers": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"verdict": "denied", "violations": [exceeded("pods", "1", "1", "1")]},
         "Quota compute in team has no room for this Pod."),
        ({"verdict": "denied", "violations": [above()]},
         "LimitRange limits refuses this Pod."),
        ({"verdict": "allowed", "observed": [above()]},
         "LimitRange limits would refuse this Pod."),
        ({"verdict": "denied", "violations": [{"message": "no", "policy": None}]},
         "The Pod was denied."),
        ({"verdict": "denied"}, "The Pod was denied."),
        ({"verdict": "mutated", "patch": [{"op": "add"}]}, "The Pod was changed."),
        ({"verdict": "allowed"}, "The Pod was allowed as it is."),
        ({"verdict": "denied", "kind": ""}, "The review was denied."),
    ],
)  # fmt: skip
def test_a_sentence_says_who_decided(fields: dict[str, Any], sentence: str) -> None:
    assert str(headline(AuditEvent(**{"kind": "Pod", **fields}))) == sentence


def test_quotas_are_told_apart_by_their_resources() -> None:
    found = [exceeded("pods", "8", "1", "8"), exceeded("requests.cpu", "7", "2", "8"), above()]
    assert [fault.words for fault in faults_of([*found, above()])] == [
        "pods: 8 used + 1 requested, the limit is 8",
        "requests.cpu: 7 used + 2 requested, the limit is 8",
        "maximum cpu is 1, but limit is 2",
    ]


@pytest.mark.parametrize(
    ("numbers", "bar"),
    [
        ({"used": "7", "requested": "2", "hard": "8"}, RoomBar(78, 22, 89)),
        ({"used": "0", "requested": "1", "hard": "0"}, RoomBar(0, 100, 0)),
        ({"used": "500m", "requested": "1", "hard": "1"}, RoomBar(33, 67, 67)),
        ({"used": "-1", "requested": "2", "hard": "1"}, RoomBar(0, 100, 100)),
        ({"used": "1", "requested": "1"}, None),
        ({"used": "one", "requested": "1", "hard": "1"}, None),
        ({"used": "0", "requested": "0", "hard": "0"}, None),
    ],
)
def test_a_bar_has_the_scale_of_its_numbers(numbers: dict[str, str], bar: RoomBar | None) -> None:
    amount = amount_of({"resource": "cpu", **numbers}, is_refused=True)
    assert (amount.bar if amount else None) == bar


def test_charges_of_the_trace_are_amounts() -> None:
    pods, cpu = charged_amounts(
        {"pods": "26 + 1 of 30", "requests.cpu": "6700m + 200m of 8", "odd": "unreadable"}
    )
    assert (pods.used, pods.requested, pods.hard, pods.after) == ("26", "1", "30", "27")
    assert (pods.percent, pods.is_exceeded) == (90, False)
    assert (cpu.after, cpu.percent) == ("6900m", 86)
