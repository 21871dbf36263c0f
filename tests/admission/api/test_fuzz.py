"""Mutated reviews, bytes and types: no 5xx, none hangs, and the engine's own verdict each time.

``FUZZ_REVIEWS`` sets how many, ``FUZZ_FROM`` with which number they begin; the number of a review
that failed is in the message, and it fails alone again. Each review is answered on the same
ledger: what it did is rolled back.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from django.db import transaction

from admission.record.redaction import is_unstorable
from admission.wire.json_reader import find_uid
from admission.wire.review import ReviewError, parse_request, safe_code
from engine import chain
from engine.errors import DecodeError
from engine.wire import loads
from policies import ledger, snapshot
from portal.serving.front import Front
from portal.serving.lean import LeanHandler
from tests.mutations import POLICIES, mutated, readable_uid
from tests.portal.serving.asgi import answered_here, scope_of
from tests.reviews import patch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.policy import PolicySet
    from engine.request import AdmissionRequest, Phase

pytestmark = [pytest.mark.django_db, pytest.mark.no_cover]
COUNT = int(os.environ.get("FUZZ_REVIEWS", "500"))
FROM = int(os.environ.get("FUZZ_FROM", "0"))
STRETCHES = max(8, COUNT // 2500)
SLOWEST = 5.0  # seconds of CPU
GROWTH = 64.0  # MiB that a process may grow once it has answered its first stretch
LONGEST_NAME, LONGEST_UID = 317, 128  # characters: what names of an API server keep to


def _is_unfit(request: AdmissionRequest) -> bool:
    """Whether a name is none that an API server makes: refused before the engine sees it."""
    resource, uid = ledger.object_key(request)
    names = (request.namespace, request.display_name, resource, uid)
    return len(uid) > LONGEST_UID or any(len(n) > LONGEST_NAME or is_unstorable(n) for n in names)


def _expected(body: bytes, phase: Phase, policies: PolicySet) -> dict[str, Any] | None:
    """What the engine says of the body, read the long way; None for what is no review."""
    refusal = {"allowed": False, "violations": "UnreadableObject", "patch": []}
    try:
        request = parse_request(loads(body))
    except DecodeError:
        return {**refusal, "code": 400} if find_uid(body) or readable_uid(body) else None
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


def _answered(answer: Any) -> dict[str, Any]:
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
def test_mutated_reviews_are_answered_as_the_engine_decides(
    ask: Callable[[bytes, Phase], Answer], apply: Callable[..., None], stretch: int
) -> None:
    apply(*POLICIES)
    policies = snapshot.load("demo", "ns")
    for number in range(FROM + stretch, FROM + COUNT, STRETCHES):
        body, phase = mutated(number)
        started = time.process_time()
        with transaction.atomic():
            answer = ask(body, phase)
            transaction.set_rollback(True)
        assert time.process_time() - started < SLOWEST, number
        assert answer.status in (200, 400), (number, answer.body)
        _check_answer(answer, body, number)
        answered = _answered(answer.review) if answer.status == 200 else None
        assert answered == _expected(body, phase, policies), number


def _check_answer(answer: Answer, body: bytes, number: int) -> None:
    """What an API server verifies of an answer."""
    uid = readable_uid(body)
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
