"""Middleware: X-Request-Id, probes, pages of 429 and 409 (writes to the past), no-store."""

from __future__ import annotations

import math
import random
import re
from typing import TYPE_CHECKING, Final

from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from rest_framework.exceptions import Throttled

from portal.health import views
from portal.logs import REVIEWS, request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

_READING: Final = ("GET", "HEAD", "OPTIONS")
_PROGRAMS: Final = ("/api/", REVIEWS)
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Takes ``X-Request-Id`` from the caller if it is well-formed, else generates one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer with the id in the response and in each log line between."""
        id_text = name_of_request(request.META.get("HTTP_X_REQUEST_ID", ""))
        id_token = request_id.set(id_text)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(id_token)
        response["X-Request-Id"] = id_text
        return response


def name_of_request(given_id: str) -> str:
    """The caller's request id if it is well-formed, else a new one."""
    if given_id and _WELL_FORMED.fullmatch(given_id):
        return given_id
    # The id is no secret. The system's own random source costs a system call for each request,
    # in which the thread gives up the interpreter lock.
    return f"{random.getrandbits(128):032x}"


class ProbeMiddleware:
    """Answers probes before the host is checked: a kubelet calls the pod by its IP address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe, or pass the request on."""
        probe = views.PROBES.get(request.path_info)
        if probe is None:
            return self.get_response(request)
        response: HttpResponse = probe(request)
        response.headers["Content-Length"] = str(len(response.content))
        return response


class ThrottledMiddleware:
    """Shows a page with HTTP 429 where a view raises Throttled."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 429 with the seconds to wait; the API answers in its own form."""
        if not isinstance(error, Throttled):
            return None
        seconds = math.ceil(getattr(error, "wait", None) or 1)
        response = render(request, "429.html", {"seconds": seconds}, status=429)
        response["Retry-After"] = str(seconds)
        return response


class PastMiddleware:
    """Refuses every write to an address of the past (``?at=``); the API refuses it by itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer 409 without looking at what was sent."""
        is_page = not request.path.startswith(_PROGRAMS)
        if request.method not in _READING and is_page and "at" in request.GET:
            return render(request, "409.html", {"now": request.path}, status=409)
        return self.get_response(request)


class NoStoreMiddleware:
    """Forbids caching of every answer without a ``Cache-Control`` of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Mark the answer, errors included: its content may be for this reader only."""
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            add_never_cache_headers(response)
        return response
