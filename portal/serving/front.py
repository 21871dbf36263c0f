"""Front, the RSGI application: usual reviews answered in the event loop, other calls in threads.

A review costs little and waits only for the writer, so one thread reads, prepares and answers them
all. Threads answer every call that is unusual or may take long, by the same rules: unknown
credentials, large or compressed bodies, hints, pages.
Source: the RSGI specification, version 1.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from admission import writer
from admission.api import respond, waits
from admission.api.authentication import bearer, is_known
from admission.decide import Call
from policies.snapshot import marks
from portal import graceful_shutdown
from portal.logs import request_id
from portal.middleware import name_of_request
from portal.serving import probes
from portal.serving.bodies import RefusedError
from portal.serving.lean import find
from portal.serving.wsgi_bridge import WsgiBridge, client_of, refuse

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from socket import socket

    from granian.rsgi import HTTPProtocol, Scope  # type: ignore[attr-defined] # the same

    from portal.graceful_shutdown import Application

LONGEST: Final = 64 * 1024  # bytes: parsing more would delay other reviews noticeably
_HEADERS: Final = [(name.lower(), value) for name, value in respond.HEADERS.items()]


class Front:
    """The RSGI application on top of a WSGI application."""

    def __init__(self, others: Application) -> None:
        self._wsgi = others
        self._https_only: bool = settings.SECURE_SSL_REDIRECT

    def __rsgi_init__(self, loop: AbstractEventLoop) -> None:
        """Start to serve in this loop."""
        self._waiters = writer.Waiters(loop)
        self._bridge = WsgiBridge(self._wsgi, loop, threads=settings.GATEHOUSE_WEB_THREADS)

    def answer_probes(self, listener: socket) -> None:
        """Answer probes at a port of their own, too, from now on."""
        probes.start(listener, self._wsgi)

    def __rsgi_del__(self, loop: AbstractEventLoop) -> None:
        """Close, after the last answer."""
        self._waiters.close()
        self._bridge.close()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answer one call."""
        usual_call = self._usual_call(scope)
        if usual_call is None:
            await self._bridge.answer(scope, protocol)
            return
        review_id = name_of_request(scope.headers.get("x-request-id", ""))
        request_id.set(review_id)  # no reset: each call is a task with a context of its own
        more_headers = [("x-request-id", review_id)]
        if graceful_shutdown.state.is_closing:
            more_headers.append(("connection", "close"))
        try:
            promised_length = int(scope.headers.get("content-length", ""))
            body = await self._bridge.bodies.whole(protocol, promised_length)
            prepared_review = respond.prepare(lambda: body, call=usual_call)
            if marks.present:
                await waits.wait_in_loop(prepared_review)
            recorded = await waits.decide_in_loop(prepared_review.item, self._waiters.outcome)
            answered = prepared_review.answer(recorded)
        except RefusedError as error:
            refuse(scope, protocol, error, more_headers)
        except Exception as error:  # noqa: BLE001 - the outermost layer
            failure = respond.fail(error)
            headers = [(key.lower(), header_value) for key, header_value in failure.headers.items()]
            protocol.response_bytes(failure.status, headers + more_headers, failure.body)
        else:
            protocol.response_bytes(200, _HEADERS + more_headers, answered)

    def _usual_call(self, scope: Scope) -> Call | None:
        """Recognise a review that can be answered at once; None for other calls."""
        review_match = find(scope.path)
        review_view: Any = review_match and review_match.func
        if review_match is None or "phase" not in review_view.view_initkwargs:
            return None  # also a hint, which queries the database
        if scope.method != "POST" or (scope.scheme != "https" and self._https_only):
            return None
        headers: Any = scope.headers
        body_length, host_headers = headers.get("content-length", ""), headers.get_all("host")
        if not body_length.isdecimal() or int(body_length) > LONGEST or len(host_headers) > 1:
            return None
        if "transfer-encoding" in headers or "content-encoding" in headers:
            return None
        cluster = review_match.kwargs["cluster"]
        credential = review_match.kwargs.get("key") or bearer(headers.get("authorization", ""))
        if not is_known(cluster, credential):
            return None
        return Call(
            cluster=cluster,
            phase=review_view.view_initkwargs["phase"],
            client=f"{client_of(scope)} {headers.get('user-agent', '')}".strip(),
            secret=credential,
            started=time.monotonic_ns(),
            budget=respond.budget(scope.query_string),
        )
