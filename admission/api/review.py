"""The endpoint an API server calls: HTTP in, HTTP out. Wire, order and rules live elsewhere."""

from __future__ import annotations

import json
import logging
import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpResponse
from django.http.request import UnreadablePostError
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException, MethodNotAllowed
from rest_framework.views import APIView

from admission import metrics
from admission.api.authentication import CHALLENGE, authenticate
from admission.api.body import read_body
from admission.decide import (
    DEFAULT_BUDGET,
    Call,
    OverBudgetError,
    Recorded,
    UnavailableError,
    UnknownCallerError,
    decide,
    refuse,
)
from admission.models import Verdict
from admission.review import (
    NotAReviewError,
    ReviewError,
    dump_response,
    parse_request,
    render_response,
)
from policies.engine.request import Phase

if TYPE_CHECKING:
    from django.http import HttpRequest
    from prometheus_client import Counter, Histogram

    from admission.api.authentication import ClusterCaller

logger = logging.getLogger(__name__)
_TIMEOUT: Final = re.compile(r"(?:^|&)timeout=([0-9]{1,4})s(?:&|$)", re.ASCII)
LONGEST_BUDGET: Final = 29.0  # an API server waits 30 seconds at most
SHORTEST_BUDGET: Final = 0.5
_TEXTS: Final = {
    400: ("BadRequest", "the body is not an AdmissionReview"),
    401: ("Unauthorized", "a valid webhook credential is required"),
    403: ("Forbidden", "this credential belongs to another cluster"),
    405: ("MethodNotAllowed", "only POST is answered here"),
    411: ("LengthRequired", "a body needs a Content-Length"),
    415: ("UnsupportedMediaType", "a body must not be compressed"),
    500: ("InternalError", "the portal failed; the failure is in its log"),
    503: ("ServiceUnavailable", "the decision could not be recorded in time; nothing was charged"),
}


@extend_schema(exclude=True)
class AdmissionReviewView(APIView):
    """``POST /admission/<cluster>[/<key>]/mutate|validate``.

    An authenticated review whose uid can be read is always answered with HTTP 200 and a verdict:
    under ``failurePolicy: Ignore`` anything else would be a way around the policy. Only our own
    failure is a 5xx, so that the cluster's failurePolicy decides.
    """

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    phase = Phase.VALIDATE

    def dispatch(self, request: HttpRequest, cluster: str, key: str = "") -> HttpResponse:
        """Take DRF's short cut: method, caller, answer.

        Its own request around Django's, its negotiation and its lists of classes to ask are left
        out: nothing of them is used here, and they cost as much as reading the review does.
        """
        try:
            _expect_post(request)
            return self.post(request, authenticate(request, cluster, key))
        except Exception as error:  # noqa: BLE001 - the last one to hear of it, as in DRF
            return self.handle_exception(error)

    def post(self, request: HttpRequest, caller: ClusterCaller) -> HttpResponse:
        """Answer one review."""
        call = Call(
            cluster=caller.cluster,
            phase=self.phase,
            client=_client(request),
            secret=caller.secret,
            started=time.monotonic_ns(),
            budget=budget(request.META.get("QUERY_STRING", "")),
        )
        uid, recorded, dry_run = self._decide(request, call)
        _count(recorded, call=call, dry_run=dry_run)
        answer = render_response(
            recorded.decision,
            uid,
            phase=self.phase,
            decision_id=recorded.id,
            external_url=settings.GATEHOUSE_EXTERNAL_URL,
        )
        return _json(200, dump_response(answer))

    def _decide(self, request: HttpRequest, call: Call) -> tuple[str, Recorded, bool]:
        try:
            asked = parse_request(read_body(request))
        except ReviewError as error:
            return error.uid, refuse(error.decision, uid=error.uid, call=call), False
        return asked.uid, decide(asked, call=call), asked.dry_run

    def handle_exception(  # type: ignore[override]  # a plain response, never negotiated
        self, exc: Exception
    ) -> HttpResponse:
        """Answer what is no review, and our own failures, without telling their insides."""
        status = _status(exc)
        if status >= 500:  # noqa: PLR2004 - HTTP's own border
            metrics.FAILURES.labels(status=status).inc()
            # A database that is away is no defect: a trace for each review would bury those.
            trace = None if isinstance(exc, OverBudgetError | UnavailableError) else exc
            logger.error("an admission review was not answered: %s", status, exc_info=trace)
        else:
            metrics.REFUSED.labels(status=status).inc()
            logger.warning("an admission call was refused with %s", status)
        response = _json(status, _status_object(status))
        if status == 401:  # noqa: PLR2004 - HTTP's own number
            response["WWW-Authenticate"] = CHALLENGE
        if status == 405:  # noqa: PLR2004 - HTTP's own number
            response["Allow"] = "POST"
        return response


def _expect_post(request: HttpRequest) -> None:
    """Turn other methods away before anything else is looked at."""
    if request.method != "POST":
        raise MethodNotAllowed(str(request.method))


def budget(query: str) -> float:
    """Seconds we may take of the ``?timeout=Ns`` an API server gives: one less than it waits."""
    found = _TIMEOUT.search(query)
    if not found:
        return DEFAULT_BUDGET
    return min(max(int(found.group(1)) - 1, SHORTEST_BUDGET), LONGEST_BUDGET)


def _status(exc: Exception) -> int:
    if isinstance(exc, APIException):
        return exc.status_code
    if isinstance(exc, NotAReviewError | UnreadablePostError):
        return 400
    if isinstance(exc, UnknownCallerError):
        return 401
    if isinstance(exc, OverBudgetError | UnavailableError | DatabaseError | InterfaceError):
        return 503
    return 500


def _status_object(status: int) -> bytes:
    reason, message = _TEXTS.get(status, _TEXTS[500])
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": status,
            "reason": reason,
            "message": message,
        }
    ).encode()


def _json(status: int, body: bytes) -> HttpResponse:
    response = HttpResponse(body, status=status, content_type="application/json")
    response["Cache-Control"] = "no-store"
    # Django would log the path of an error, and with it the credential that may be in the path.
    response._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001 - its own mark
    return response


def _client(request: HttpRequest) -> str:
    found = request.META
    return f"{found.get('REMOTE_ADDR', '')} {found.get('HTTP_USER_AGENT', '')}".strip()


def _count(recorded: Recorded, *, call: Call, dry_run: bool) -> None:
    decision = recorded.decision
    verdict = Verdict.MUTATED if decision.patch else Verdict.ALLOWED
    decisions, seconds = _counters(
        call.cluster, call.phase, verdict if decision.allowed else Verdict.DENIED, dry_run
    )
    decisions.inc()
    seconds.observe(call.spent)


@lru_cache(maxsize=4096)
def _counters(
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
