"""Mutated reviews, bytes and types: no 5xx, none hangs, and the engine's own verdict each time.

``FUZZ_REVIEWS`` sets how many, ``FUZZ_FROM`` with which number they begin; the number of a review
that failed is in the message, and it fails alone again. Each review is answered on the same
ledger: what it did is rolled back.
"""

from __future__ import annotations

import copy
import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from django.db import transaction

from admission.redaction import is_unstorable
from admission.request_uid import find_uid
from admission.review import ReviewError, parse_request, safe_code
from policies import policy_set, snapshot, usage
from policies.engine import chain
from policies.engine.errors import DecodeError
from policies.engine.request import Phase
from policies.engine.wire import loads
from portal.serving.front import Front
from portal.serving.lean import LeanHandler
from tests.builders import container
from tests.portal.rsgi import answered_here, scope_of
from tests.reviews import SEED_LIMITS, new_pod, patch_of, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policies.engine.policy import PolicySet
    from policies.engine.request import AdmissionRequest

pytestmark = [pytest.mark.django_db, pytest.mark.no_cover]
COUNT = int(os.environ.get("FUZZ_REVIEWS", "2000"))
FROM = int(os.environ.get("FUZZ_FROM", "0"))
STRETCHES = max(8, COUNT // 2500)
SLOWEST = 5.0  # seconds
GROWTH = 64.0  # MiB that a process may grow once it has answered its first stretch
LONGEST_NAME, LONGEST_UID = 317, 128  # characters: what names of an API server keep to
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
    """As an API server writes, as a person does, or with every letter as it is."""
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


def _readable_uid(body: bytes) -> str:
    """The uid any JSON reader would find; empty where there is none.

    What is no UTF-8 reads as U+FFFD, as Go reads it.
    """
    try:
        found = json.loads(body.decode("utf-8", "replace"))["request"]["uid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _is_unfit(request: AdmissionRequest) -> bool:
    """Whether a name is none that an API server makes: refused before the engine sees it."""
    resource, uid = usage.object_key(request)
    names = (request.namespace, request.display_name, resource, uid)
    return len(uid) > LONGEST_UID or any(len(n) > LONGEST_NAME or is_unstorable(n) for n in names)


def _expected(body: bytes, phase: Phase, policies: PolicySet) -> dict[str, Any] | None:
    """What the engine says of the body, read the long way; None for what is no review."""
    refusal = {"allowed": False, "violations": "UnreadableObject", "patch": []}
    try:
        request = parse_request(loads(body))
    except DecodeError:
        return {**refusal, "code": 400} if find_uid(body) or _readable_uid(body) else None
    except ReviewError as error:
        return {**refusal, "code": error.code}
    except ValueError:
        return None
    if _is_unfit(request):
        return {**refusal, "code": 422}
    if request.namespace != policies.namespace:
        policies = replace(
            policies,
            namespace=request.namespace,
            limit_ranges=(),
            metadata_policies=(),
            resource_quotas=(),
        )
    decision = chain.admit(request, policies, phase=phase, now="2026-01-01T00:00:00Z")
    return {
        "allowed": decision.allowed,
        "code": None if decision.allowed else safe_code(decision.code),
        "violations": ",".join(sorted({found.reason for found in decision.violations})),
        "patch": [operation.to_json() for operation in decision.patch],
    }


def _told(answer: Any) -> dict[str, Any]:
    response = answer["response"]
    return {
        "allowed": response["allowed"],
        "code": response.get("status", {}).get("code"),
        "violations": response["auditAnnotations"].get("violations", ""),
        "patch": patch_of(answer),
    }


def _resident() -> float:
    """MiB of this process that stay in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Answer(NamedTuple):
    """Status and body."""

    status: int
    body: bytes

    @property
    def review(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@pytest.fixture
def ask(secret: str) -> Callable[[bytes, Phase], Answer]:
    """Ask what API servers ask; Django's test client keeps a little of each request."""

    def nobody(*_: Any) -> list[bytes]:
        raise AssertionError("the full stack was asked")

    front = Front(LeanHandler(nobody))
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    snapshot.refresh()

    def post(body: bytes, phase: Phase) -> Answer:
        scope = scope_of(f"/admission/demo/{phase.value}", body, headers=headers)
        found = answered_here(front, scope, body)
        return Answer(found.status, found.body)

    return post


_after_first: list[float] = []


@pytest.fixture
def _bounded_memory() -> Iterator[None]:
    yield
    _after_first.append(_resident())
    assert _after_first[-1] < _after_first[0] + GROWTH
    del _after_first[1:]


@pytest.mark.usefixtures("_bounded_memory")
@pytest.mark.parametrize("stretch", range(STRETCHES))
def test_mutated_reviews_are_answered_as_the_engine_says(
    ask: Callable[[bytes, Phase], Answer], apply: Callable[..., None], stretch: int
) -> None:
    apply(*POLICIES)
    policies, bases = policy_set.load("demo", "ns"), _bases()
    for number in range(FROM + stretch, FROM + COUNT, STRETCHES):
        dice = random.Random(number)  # noqa: S311 - repeatable on purpose
        mutate = dice.choice((_mutated_types, _mutated_types, _mutated_bytes))
        body, phase = mutate(dice.choice(bases), dice), dice.choice((Phase.MUTATE, Phase.VALIDATE))
        started = time.monotonic()
        with transaction.atomic():
            answer = ask(body, phase)
            transaction.set_rollback(True)
        assert time.monotonic() - started < SLOWEST, number
        assert answer.status in (200, 400), (number, answer.body)
        _check_answer(answer, body, number)
        told = _told(answer.review) if answer.status == 200 else None
        assert told == _expected(body, phase, policies), number


def _check_answer(answer: Answer, body: bytes, number: int) -> None:
    """What an API server verifies of an answer."""
    uid = _readable_uid(body)
    if answer.status == 400:
        assert not uid, number
        return
    response = answer.review["response"]
    assert not uid or response["uid"] == uid, number
    assert isinstance(response["allowed"], bool), number
    assert ("patch" in response) == ("patchType" in response), number
    if not response["allowed"]:
        assert 400 <= response["status"]["code"] < 500, number
        assert response["status"]["code"] != 429, number
        assert response["status"]["message"], number
        assert "patch" not in response, number
