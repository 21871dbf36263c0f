"""AdmissionReviewView: HTTP method, caller and Call of one review; HintView; the HttpResponse."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.views import APIView

from admission import hints, metrics
from admission.api import respond, waits
from admission.api.authentication import authenticate
from admission.api.body import read_body
from admission.decide import Call
from admission.wire.review import ReviewError, dump_response, parse_request, render_allowance
from engine.request import Phase
from policies import snapshot
from policies.snapshot import marks

if TYPE_CHECKING:
    from django.http import HttpRequest

    from admission.api.authentication import ClusterCaller


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
        """Check the method, authenticate the caller, answer.

        DRF's request wrapper, content negotiation and permission checks are left out: nothing here
        uses them, and they cost as much as reading the review.
        """
        # Before authentication: another method gets 405, not a hint about the credential.
        if request.method != "POST":
            return _refusal(MethodNotAllowed(str(request.method)))
        try:
            return self.post(request, authenticate(request, cluster, key))
        except Exception as error:  # noqa: BLE001 - the outermost layer, as in DRF
            return _refusal(error)

    def post(self, request: HttpRequest, caller: ClusterCaller) -> HttpResponse:
        """Answer one review."""
        meta = request.META
        call = Call(
            cluster=caller.cluster,
            phase=self.phase,
            client=f"{meta.get('REMOTE_ADDR', '')} {meta.get('HTTP_USER_AGENT', '')}".strip(),
            secret=caller.secret,
            started=time.monotonic_ns(),
            budget=respond.budget(meta.get("QUERY_STRING", "")),
        )
        prepared = respond.prepare(partial(read_body, request), call=call)
        if marks.present:
            waits.wait_in_thread(prepared)
        recorded = waits.decide_in_thread(prepared.item)
        return HttpResponse(prepared.answer(recorded), headers=respond.HEADERS)


class HintView(AdmissionReviewView):
    """``POST /admission/<cluster>[/<key>]/hint``: a write that is announced, never refused.

    It needs no audit row: nothing is decided. Whatever fails, the write is let pass.
    """

    def post(self, request: HttpRequest, caller: ClusterCaller) -> HttpResponse:
        """Allow one write, after it was announced."""
        try:
            announced = parse_request(read_body(request))
        except ReviewError as error:
            return HttpResponse(_allowance(error.uid), headers=respond.HEADERS)
        cluster = snapshot.current().clusters.get(caller.cluster)
        if cluster is not None and hints.is_announced(announced):
            try:
                hints.announce(announced, cluster.id)
            except (DatabaseError, InterfaceError):
                metrics.HINTS.labels(outcome="failed").inc()
        return HttpResponse(_allowance(announced.uid), headers=respond.HEADERS)


def _allowance(uid: str) -> bytes:
    return dump_response(render_allowance(uid))


def _refusal(error: Exception) -> HttpResponse:
    """Answer what is no review, and our own failures, without internal details."""
    failure = respond.fail(error)
    return HttpResponse(failure.body, status=failure.status, headers=failure.headers)
