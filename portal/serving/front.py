"""Front, the ASGI application: usual reviews answered in the event loop, other calls in threads.

A review costs little and waits only for the writer, so one thread reads, prepares and answers them
all. Threads answer every call that is unusual or may take long, by the same rules: unknown
credentials, large or compressed bodies, hints, pages.
Source: the ASGI specification, version 3.0.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from admission import writer
from admission.api import respond, waits
from admission.api.authentication import bearer, is_known
from admission.decide import Call, decide_ahead
from policies.snapshot import marks
from portal import graceful_shutdown
from portal.logs import request_id
from portal.middleware import name_of_request
from portal.serving.bodies import BodyLimit, RefusedError
from portal.serving.lean import find
from portal.serving.probes import Probes
from portal.serving.request_head import RequestHead, answer_raw, raw
from portal.serving.wsgi_bridge import WsgiBridge, refuse

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import MutableMapping

    from admission.api.respond import PreparedReview
    from admission.decide import RecordedDecision
    from portal.graceful_shutdown import Application
    from portal.serving.request_head import Receive, Scope, Send

LONGEST: Final = 64 * 1024  # bytes: parsing more would delay other reviews noticeably
_HEADERS: Final = raw(respond.HEADERS.items())
_CLOSE: Final = (b"connection", b"close")
COMMIT_WITHIN: Final = 5.0  # seconds
_REVIEW: Final = BodyLimit(most=LONGEST, kept=LONGEST, is_known=True)


class Front:
    """The ASGI application on top of a WSGI application."""

    def __init__(self, wsgi_application: Application) -> None:
        self.wsgi_application = wsgi_application
        self._https_only: bool = settings.SECURE_SSL_REDIRECT
        self._queues_mutations = settings.GATEHOUSE_RECORD_MUTATIONS == "queued"

    def begin(self, loop: AbstractEventLoop) -> None:
        """Start to serve in this loop."""
        self._waiters = writer.Waiters(loop)
        self._bridge = WsgiBridge(self.wsgi_application, threads=settings.GATEHOUSE_WEB_THREADS)
        self._probes = Probes(self.wsgi_application)

    async def close(self) -> None:
        """Close, after the last answer, once the rows of all that is answered are on record."""
        self._bridge.close()
        await self._waiters.close(COMMIT_WITHIN)
        self._probes.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if graceful_shutdown.state.is_closing:
            send = _closing(send)
        head = RequestHead.of(scope)
        if usual_call := self._usual_call(head, scope):
            await self._answer_review(usual_call, head, receive, send)
        elif head.path in self._probes.paths:
            await self._probes(scope, receive, send)
        else:
            await self._bridge.answer(head, scope, receive, send)

    async def _answer_review(
        self, call: Call, head: RequestHead, receive: Receive, send: Send
    ) -> None:
        review_id = name_of_request(head.get(b"x-request-id"))
        request_id.set(review_id)  # no reset: each call is a task with a context of its own
        bodies, body = self._bridge.bodies, b""
        try:
            body = await bodies.read(receive, int(head.get(b"content-length")), _REVIEW)
            prepared_review = respond.prepare(lambda: body, call=call)
            if marks.present:
                await waits.wait_in_loop(prepared_review)
            recorded = self._queued(prepared_review) or await waits.decide_in_loop(
                prepared_review.item, self._waiters.outcome
            )
            answered, status, headers = prepared_review.answer(recorded), 200, _HEADERS
        except RefusedError as error:
            await refuse(head, send, error, [("x-request-id", review_id)])
            return
        except Exception as error:  # noqa: BLE001 - the outermost layer
            failure = respond.fail(error)
            answered, status, headers = failure.body, failure.status, raw(failure.headers.items())
        finally:
            bodies.release(len(body))
        headers = [*headers, (b"x-request-id", review_id.encode())]
        await answer_raw(send, status, headers, answered)

    def _queued(self, review: PreparedReview) -> RecordedDecision | None:
        """Queue the row of a mutation that is allowed; None where the answer has to wait for it."""
        if not self._queues_mutations or not self._waiters.may_queue:
            return None
        recorded = decide_ahead(review.item)
        if recorded is not None:
            self._waiters.queue(review.item)
        return recorded

    def _usual_call(self, head: RequestHead, scope: Scope) -> Call | None:
        """Recognise a review that can be answered at once; None for other calls."""
        review_match = find(head.path)
        review_view: Any = review_match and review_match.func
        if review_match is None or "phase" not in review_view.view_initkwargs:
            return None  # also a hint, which queries the database
        if head.method != "POST" or (scope["scheme"] != "https" and self._https_only):
            return None
        body_length = head.get(b"content-length")
        if not head.is_plain or not body_length or int(body_length) > LONGEST:
            return None
        if b"content-encoding" in head:
            return None
        cluster = review_match.kwargs["cluster"]
        credential = review_match.kwargs.get("key") or bearer(head.get(b"authorization"))
        if not is_known(cluster, credential):
            return None
        return Call(
            cluster=cluster,
            phase=review_view.view_initkwargs["phase"],
            client=f"{scope['client'][0]} {head.get(b'user-agent')}".strip(),
            secret=credential,
            started=time.monotonic_ns(),
            budget=respond.budget(scope["query_string"].decode("latin-1")),
        )


def _closing(send: Send) -> Send:
    """Have answers end their connections: this process is about to end."""

    async def send_closing(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and _CLOSE not in message["headers"]:
            message["headers"] = [*message["headers"], _CLOSE]
        await send(message)

    return send_closing
