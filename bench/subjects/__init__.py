"""Subjects beside the product; here the web server's own floor, a bare ASGI function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def echo(
    _scope: Any,
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Allow whatever is asked."""
    message = await receive()
    pieces = [message["body"]]
    while message["more_body"]:
        message = await receive()
        pieces.append(message["body"])
    review = orjson.loads(b"".join(pieces))
    response = {"uid": review["request"]["uid"], "allowed": True}
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    body = orjson.dumps({**kind, "response": response})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
