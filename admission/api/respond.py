"""PreparedReview to answer and its counters; budget of ``?timeout``; Failure: Status by HTTP code.

Between the two the caller waits for writes under way (``waits``), submits to the writer and waits
for it, in a thread or in an event loop.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http.request import UnreadablePostError
from rest_framework.exceptions import APIException

from admission import decide, metrics
from admission.alike import read_review
from admission.api.authentication import CHALLENGE
from admission.api.body import LARGE, in_turn
from admission.decide import DEFAULT_BUDGET, OverBudgetError, UnavailableError, UnknownCallerError
from admission.models.columns import verdict_of
from admission.wire.review import (
    NotAReviewError,
    ReviewError,
    dump_response,
    render_response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import Counter, Histogram

    from admission.decide import Call, RecordedDecision
    from admission.models import Verdict
    from admission.writer import PendingDecision
    from engine.request import Phase

logger = logging.getLogger(__name__)
HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}
"""Of every answer."""
LONGEST_BUDGET: Final = 29.0  # an API server waits 30 seconds at most
SHORTEST_BUDGET: Final = 0.5
_TIMEOUT: Final = re.compile(r"(?:^|&)timeout=([0-9]{1,4})s(?:&|$)", re.ASCII)
_STATUS_TEXTS: Final = {
    400: ("BadRequest", "the body is not an AdmissionReview"),
    401: ("Unauthorized", "a valid webhook credential is required"),
    403: ("Forbidden", "this credential belongs to another cluster"),
    405: ("MethodNotAllowed", "only POST is answered here"),
    408: ("Timeout", "the body did not arrive in time"),
    411: ("LengthRequired", "a body needs a Content-Length"),
    413: ("RequestEntityTooLarge", "the body is larger than any review"),
    415: ("UnsupportedMediaType", "a body must not be compressed"),
    500: ("InternalError", "the portal failed; the failure is in its log"),
    503: ("ServiceUnavailable", "the decision could not be recorded in time; nothing was charged"),
}
_STATUS_HEADERS: Final[dict[int, dict[str, str]]] = {
    401: {"WWW-Authenticate": CHALLENGE},
    405: {"Allow": "POST"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedReview:
    """A review that was read and prepared; the writer takes its ``item``."""

    call: Call
    uid: str
    item: PendingDecision
    dry_run: bool = False
    namespace: str = ""

    def answer(self, recorded: RecordedDecision) -> bytes:
        """Count the decision, and render the review that answers."""
        call, verdict = self.call, verdict_of(recorded.decision)
        decisions, seconds = _review_counters(call.cluster, call.phase, verdict, self.dry_run)
        decisions.inc()
        seconds.observe(call.spent)
        response = render_response(
            recorded.decision,
            self.uid,
            phase=call.phase,
            decision_id=recorded.id,
            external_url=settings.GATEHOUSE_EXTERNAL_URL,
        )
        return dump_response(response)


def prepare(read: Callable[[], bytes], *, call: Call) -> PreparedReview:
    """Read and prepare a review. Raises ``NotAReviewError``, and the errors of both steps."""
    try:
        body = read()
        if len(body) < LARGE:
            return _prepared_review(body, call)
        with in_turn(call):
            return _prepared_review(body, call)
    except ReviewError as error:
        pending = decide.prepare_refusal(error.decision, uid=error.uid, call=call)
        return PreparedReview(call=call, uid=error.uid, item=pending)


def _prepared_review(body: bytes, call: Call) -> PreparedReview:
    review = read_review(body)
    pending = decide.prepare(review, call=call, may_postpone=True)
    request = review.request
    return PreparedReview(
        call=call,
        uid=request.uid,
        item=pending,
        dry_run=request.dry_run,
        namespace=request.namespace,
    )


@lru_cache(64)  # the webhooks of all clusters send few different queries
def budget(query: str) -> float:
    """Seconds to answer in: one less than the ``?timeout=Ns`` that the API server waits."""
    timeout = _TIMEOUT.search(query)
    if not timeout:
        return DEFAULT_BUDGET
    return min(max(int(timeout.group(1)) - 1, SHORTEST_BUDGET), LONGEST_BUDGET)


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer to a call that is no review, or that we failed: a Kubernetes ``Status``."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def fail(exc: Exception) -> Failure:
    """Count and log an error, and build its answer, without internal details."""
    return refuse(_http_status(exc), exc)


def refuse(status: int, exc: Exception) -> Failure:
    """Count and log a call that gets this status, and build the answer."""
    if status >= 500:  # noqa: PLR2004 - HTTP's own border
        metrics.FAILURES.labels(status=status).inc()
        # A database that is away is no defect: a trace for each review would bury those.
        logged_trace = None if isinstance(exc, OverBudgetError | UnavailableError) else exc
        logger.error("an admission review was not answered: %s", status, exc_info=logged_trace)
    else:
        metrics.REFUSED.labels(status=status).inc()
        logger.warning("an admission call was refused with %s", status)
    reason, message = _STATUS_TEXTS.get(status, _STATUS_TEXTS[500])
    status_object = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": message,
    }
    headers = {**HEADERS, **_STATUS_HEADERS.get(status, {})}
    return Failure(status, json.dumps(status_object).encode(), headers)


def _http_status(exc: Exception) -> int:
    if isinstance(exc, APIException):
        return exc.status_code
    if isinstance(exc, NotAReviewError | UnreadablePostError):
        return 400
    if isinstance(exc, UnknownCallerError):
        return 401
    if isinstance(exc, OverBudgetError | UnavailableError | DatabaseError | InterfaceError):
        return 503
    return 500


@lru_cache(maxsize=4096)
def _review_counters(
    cluster: str,
    phase: Phase,
    verdict: Verdict,
    dry_run: bool,  # noqa: FBT001 - a cache wants positions
) -> tuple[Counter, Histogram]:
    """Find the counters of these labels once: looking them up costs more than counting."""
    decisions = metrics.DECISIONS.labels(
        cluster=cluster, phase=phase.value, verdict=verdict.value, dry_run=str(dry_run).lower()
    )
    return decisions, metrics.SECONDS.labels(phase=phase.value)
