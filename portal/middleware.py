"""What every request passes first: an id for its log lines, and the answers to probes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from portal import health
from portal.logs import request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Takes ``X-Request-Id`` from the caller when it is well-formed, else makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer with the id in the response and in each log line between."""
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        name = given if _WELL_FORMED.fullmatch(given) else os.urandom(16).hex()
        token = request_id.set(name)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-Id"] = name
        return response


class ProbeMiddleware:
    """Answers probes before hosts are checked: a kubelet asks by the pod's own address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe, or pass the request on."""
        probe = health.PROBES.get(request.path_info)
        return probe(request) if probe else self.get_response(request)
