"""Middleware of every request: request ids, probes, cache headers, security headers."""

from __future__ import annotations

import math
import random
import re
from typing import TYPE_CHECKING, Final

from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from rest_framework.exceptions import Throttled

from portal.health import views
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
        name = name_of_request(request.META.get("HTTP_X_REQUEST_ID", ""))
        token = request_id.set(name)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-Id"] = name
        return response


def name_of_request(given: str) -> str:
    """The caller's id where it is well-formed, else one of ours."""
    if given and _WELL_FORMED.fullmatch(given):
        return given
    # It distinguishes them and keeps nothing secret. The system's own bits, with which a process
    # begins, would have the thread stand back each time.
    return f"{random.getrandbits(128):032x}"


class ProbeMiddleware:
    """Answers probes before hosts are checked: a kubelet asks by the pod's own address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe, or pass the request on."""
        probe = views.PROBES.get(request.path_info)
        return probe(request) if probe else self.get_response(request)


class ThrottledMiddleware:
    """Says on a page, too, that somebody has to wait."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 429 with the seconds to wait; the API words its own."""
        if not isinstance(error, Throttled):
            return None
        seconds = math.ceil(getattr(error, "wait", None) or 1)
        response = render(request, "429.html", {"seconds": seconds}, status=429)
        response["Retry-After"] = str(seconds)
        return response


class NoStoreMiddleware:
    """Lets no cache keep an answer that does not say itself how long it is true."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Mark the answer, also one about an error: it may say what only its reader may see."""
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            add_never_cache_headers(response)
        return response
