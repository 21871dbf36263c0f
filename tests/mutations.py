"""Mutated reviews, each by its number: other types, other bytes, odd names, odd numbers."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from typing import Any

from engine.request import Phase
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

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
    _full := quota(
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
_full["status"] = {"hard": {"pods": "10"}, "used": {"pods": "10"}}


def mutated(number: int) -> tuple[bytes, Phase]:
    """The review of that number, and its call.

    The same one each time, except for the uids, which each process generates.
    """
    dice = random.Random(number)  # noqa: S311 - repeatable on purpose
    mutate = dice.choice((_mutated_types, _mutated_types, _mutated_bytes))
    return mutate(dice.choice(_bases()), dice), dice.choice((Phase.MUTATE, Phase.VALIDATE))


@cache
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
            holder[dice.choice(["", "\x00", "cpu", "-x", "$number"])] = holder.pop(key, None)
        elif isinstance(holder, dict):
            holder.pop(key, None)
        else:
            holder.extend(copy.deepcopy(holder[:1]))
    return _written(body, dice)


def _written(body: Any, dice: random.Random) -> bytes:
    """In an API server's format, in a person's, or without escapes."""
    compact = dice.random() < 0.7
    separators = (",", ":") if compact else None
    text = json.dumps(body, separators=separators, ensure_ascii=dice.random() < 0.3)
    return text.encode("utf-8", "surrogatepass")


def _mutated_bytes(body: Any, dice: random.Random) -> bytes:
    data = bytearray(_written(body, dice))
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


def readable_uid(body: bytes) -> str:
    """The uid that any JSON reader would find; empty if there is none.

    Invalid UTF-8 decodes to U+FFFD, as in Go.
    """
    try:
        found = json.loads(body.decode("utf-8", "replace"))["request"]["uid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""
