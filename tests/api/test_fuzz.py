"""Mutated reviews, bytes and types: no 5xx, none hangs, each readable uid echoed.

``FUZZ_REVIEWS`` sets how many; a failing seed is in the message and fails alone again.
"""

from __future__ import annotations

import copy
import json
import os
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
COUNT = int(os.environ.get("FUZZ_REVIEWS", "3000"))
STRETCHES = 8
SLOWEST = 5.0  # seconds
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "\x00",
    "\ud800",
    "1e999999999",
    "-5",
    "9" * 3000,
    "x" * 3000,
    "ü☃",
    [],
    {},
    [None],
    [[]],
    {"": ""},
    {"a": {"b": None}},
    ["a", 1, {}],
    "Pod",
    "DELETE",
    "status",
    "1Gi",
    "NaN",
    "cpu",
]
POLICIES = [
    SEED_LIMITS,
    quota(hard={"pods": "100", "requests.cpu": "50", "count/services": "2", "services": "5"}),
    quota(
        "high",
        hard={"pods": "10"},
        scopeSelector={
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
            ]
        },
    ),
    {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": {"name": "rules", "namespace": "ns"},
        "spec": {
            "rules": [
                {
                    "policyPredicate": {"labelSelector": {"matchLabels": {"bad": "yes"}}},
                    "policyAction": {"reject": True},
                },
                {
                    "policyPredicate": {},
                    "policyAction": {"updatedAnnotations": {"seen": "yes"}},
                },
            ]
        },
    },
]


def _bases() -> list[Any]:
    old = new_pod("p", container(requests={"cpu": "1"}, limits={"memory": "1Gi"}))
    old["metadata"].update(resourceVersion="1", labels={"a": "b"}, annotations={"c": "d"})
    full = copy.deepcopy(old)
    full["spec"].update(
        initContainers=[container("i", limits={"cpu": "1"})],
        resources={"requests": {"cpu": "1"}},
        overhead={"cpu": "100m"},
        priorityClassName="high",
        activeDeadlineSeconds=5,
    )
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "uid": "du"},
        "spec": {"replicas": 2, "template": {"metadata": {}, "spec": full["spec"]}},
    }
    service = {
        "kind": "Service",
        "metadata": {"name": "s", "uid": "su"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30000}]},
    }
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "uid": "cu"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "gold"},
    }
    return [
        review(full),
        review(full, operation="UPDATE", oldObject=old),
        review(full, operation="UPDATE", oldObject=old, subResource="resize"),
        _other(deployment, "apps", "deployments"),
        _other(service, "", "services"),
        _other(claim, "", "persistentvolumeclaims"),
        *(_other(policy, "", f"{policy['kind'].lower()}s") for policy in POLICIES[:2]),
        _other(POLICIES[3], "policy.gatehouse.dev", "metadatapolicies"),
    ]


def _other(obj: dict[str, Any], group: str, resource: str) -> Any:
    kind = {"group": group, "version": "v1", "kind": obj["kind"]}
    return review(obj, kind=kind, resource={"group": group, "version": "v1", "resource": resource})


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found, pending = [], [value]
    while pending:
        current = pending.pop()
        keys = current.keys() if isinstance(current, dict) else range(len(current))
        for key in list(keys):
            found.append((current, key))
            if isinstance(current[key], dict | list):
                pending.append(current[key])
    return found


def _mutated_types(body: Any, dice: random.Random) -> bytes:
    body = copy.deepcopy(body)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        holder, key = dice.choice(_places(body) or [({}, "")])
        choice = dice.random()
        if choice < 0.7:
            holder[key] = copy.deepcopy(dice.choice(ODD))
        elif choice < 0.85 and isinstance(holder, dict):
            holder[dice.choice(["", "\x00", "cpu", "-x", "$number"])] = holder.pop(key)
        elif isinstance(holder, dict):
            holder.pop(key)
        else:
            holder.extend(copy.deepcopy(holder[:1]))
    return json.dumps(body).encode()


def _mutated_bytes(body: Any, dice: random.Random) -> bytes:
    data = bytearray(json.dumps(body).encode())
    for _ in range(dice.choice((1, 1, 2, 8))):
        place = dice.randrange(len(data) or 1)
        choice = dice.randrange(4)
        if choice == 0:
            data[place : place + 1] = bytes([dice.randrange(256)])
        elif choice == 1:
            del data[place : place + dice.choice((1, 5, 100))]
        elif choice == 2:
            data[place:place] = dice.choice((b"\x00", b"\xff", b'"', b"{", b"[" * 3000, b"e9"))
        else:
            data[place:place] = data[place : place + dice.choice((3, 30))]
    return bytes(data)


def _readable_uid(body: bytes) -> str:
    """The uid any JSON reader would find; empty where there is none."""
    try:
        found = json.loads(body)["request"]["uid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


@pytest.mark.parametrize("stretch", range(STRETCHES))
def test_mutated_reviews_are_always_answered(
    ask: Callable[..., Any], apply: Callable[..., None], stretch: int
) -> None:
    apply(*POLICIES)
    bases = _bases()
    for number in range(stretch, COUNT, STRETCHES):
        dice = random.Random(number)  # noqa: S311 - repeatable on purpose
        mutate = dice.choice((_mutated_types, _mutated_types, _mutated_bytes))
        body = mutate(dice.choice(bases), dice)
        started = time.monotonic()
        response = ask(body, phase=dice.choice(("mutate", "validate")))
        assert time.monotonic() - started < SLOWEST, number
        assert response.status_code in (200, 400), (number, response.content)
        uid = _readable_uid(body)
        if response.status_code == 200:
            _check_answer(response.json(), uid, number)
        else:
            assert not uid, number


def _check_answer(answer: Any, uid: str, number: int) -> None:
    """What an API server verifies of an answer."""
    response = answer["response"]
    assert not uid or response["uid"] == uid, number
    assert isinstance(response["allowed"], bool), number
    assert ("patch" in response) == ("patchType" in response), number
    if not response["allowed"]:
        assert 400 <= response["status"]["code"] < 500, number
        assert response["status"]["code"] != 429, number
        assert response["status"]["message"], number
        assert "patch" not in response, number
