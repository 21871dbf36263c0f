"""Subjects beside the product; here the web server's own floor, a bare WSGI function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable


def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Allow whatever is asked."""
    review = orjson.loads(environ["wsgi.input"].read())
    response = {"uid": review["request"]["uid"], "allowed": True}
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    body = orjson.dumps({**kind, "response": response})
    length = ("Content-Length", str(len(body)))
    start_response("200 OK", [("Content-Type", "application/json"), length])
    return [body]
