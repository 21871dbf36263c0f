"""WsgiBridge: ASGI calls answered by WSGI in threads (a2wsgi), bodies read before; ``refuse``.

The whole body is in memory before a thread is taken, so no caller can keep one waiting. Probes have
threads of their own, so they never wait for pages. Long answers are sent piece by piece.
"""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from a2wsgi import WSGIMiddleware

from admission.api import respond
from policies.problem_details import CONTENT_TYPE, problem
from portal.logs import REVIEWS
from portal.middleware import name_of_request
from portal.serving.bodies import Bodies, RefusedError
from portal.serving.bounds import bound_of
from portal.serving.request_head import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping

    from portal.graceful_shutdown import Application
    from portal.serving.request_head import Receive, RequestHead, Scope, Send

logger = logging.getLogger(__name__)
LOOKUP_THREADS: Final = 2
"""They look for credentials that are not in memory."""
_REFUSAL_TEXTS: Final = {
    400: "The request is broken: its body ends early, it names two hosts, or its path has a %2F.",
    408: "The body did not arrive in time.",
    413: "The body is larger than this address takes.",
    503: "Too many bodies are on their way; try again.",
}


class WsgiBridge:
    """Answers calls in a bounded number of threads."""

    def __init__(self, application: Application, *, threads: int) -> None:
        self._pages = in_threads(application, threads)
        self._lookup_threads = ThreadPoolExecutor(LOOKUP_THREADS, "credentials")
        self.bodies = Bodies()

    def close(self) -> None:
        """Take no more calls; those in threads are still answered."""
        self._lookup_threads.shutdown(wait=False)
        self._pages.executor.shutdown(wait=False)

    async def answer(self, head: RequestHead, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call in a thread."""
        try:
            body = await self._body(head, receive)
        except RefusedError as error:
            id_text = name_of_request(head.get(b"x-request-id"))
            await refuse(head, send, error, [("x-request-id", id_text)])
            return
        try:
            await call_wsgi(self._pages, scope, send, receive=receive, body=body)
        finally:
            self.bodies.release(len(body))

    async def _body(self, head: RequestHead, receive: Receive) -> bytes:
        if not head.is_plain:
            raise RefusedError(400)
        loop = asyncio.get_running_loop()
        body_limit = await bound_of(head, partial(loop.run_in_executor, self._lookup_threads))
        if body_limit is None:
            return b""
        promised = head.get(b"content-length")
        return await self.bodies.read(receive, int(promised) if promised else None, body_limit)


def in_threads(application: Application, threads: int) -> Any:
    """The application as ASGI, in so many threads of ``executor``."""
    return WSGIMiddleware(_while_there(application), workers=threads)


async def call_wsgi(
    in_thread: Any, scope: Scope, send: Send, *, receive: Receive, body: bytes = b""
) -> None:
    """Have an application ``in_threads`` answer a call whose body is read."""
    caller, is_started = _Caller(), False

    async def receive_body() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send_on(message: MutableMapping[str, Any]) -> None:
        nonlocal is_started
        is_started = True
        await send(message)

    wsgi_scope = {**scope, "headers": _wsgi_headers(scope, body), "gatehouse.caller": caller}
    watching = asyncio.create_task(caller.watch(receive))
    try:
        await in_thread(wsgi_scope, receive_body, send_on)
    except Exception:
        if is_started:
            raise  # the server logs it, and breaks the connection off
        logger.exception("a call was not answered")
        await answer(send, 500, [("content-type", "text/plain"), ("connection", "close")])
    finally:
        watching.cancel()


class _Caller:
    """Whether somebody is still there to read the answer."""

    has_gone = False

    async def watch(self, receive: Receive) -> None:
        while (await receive())["type"] == "http.request":
            pass  # a body that nobody reads
        self.has_gone = True


def _while_there(application: Application) -> Any:
    """The application; it is asked for no more pieces of an answer than somebody reads."""

    def answer_while_there(
        environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterator[bytes]:
        caller: _Caller = environ["asgi.scope"]["gatehouse.caller"]
        answer_pieces: Iterable[bytes] = application(environ, start_response)
        try:
            for answer_piece in answer_pieces:
                yield answer_piece
                if caller.has_gone:
                    return
        finally:
            if close := getattr(answer_pieces, "close", None):
                close()

    return answer_while_there


def _wsgi_headers(scope: Scope, body: bytes) -> list[tuple[bytes, bytes]]:
    # WSGI could not distinguish an underscore in a name from a hyphen.
    headers = [pair for pair in scope["headers"] if b"_" not in pair[0]]
    if body and not any(name == b"content-length" for name, _ in headers):
        headers.append((b"content-length", b"%d" % len(body)))  # it came in chunks
    return headers


async def refuse(
    head: RequestHead, send: Send, error: RefusedError, more_headers: list[tuple[str, str]]
) -> None:
    """Refuse a call without reading its body, in the format of its address."""
    status = error.status
    # The rest of the body is still on its way: this connection cannot carry another request.
    headers = [("connection", "close"), *more_headers]
    if status == 503:  # noqa: PLR2004 - HTTP's own number
        headers.append(("retry-after", "1"))
    if head.path.startswith(REVIEWS):
        review_refusal = respond.refuse(status, error)
        headers += review_refusal.headers.items()
        refusal_body = review_refusal.body
    elif head.path.startswith("/api/"):
        headers += [("content-type", CONTENT_TYPE), ("cache-control", "no-store")]
        refusal_body = json.dumps(problem(status, _REFUSAL_TEXTS[status])).encode()
    else:
        headers += [("content-type", "text/plain"), ("cache-control", "no-store")]
        refusal_body = f"{_REFUSAL_TEXTS[status]}\n".encode()
    await answer(send, status, headers, refusal_body)
