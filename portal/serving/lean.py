"""The lean stack: LeanRequest, LeanHandler, admission addresses resolved, few middlewares.

It answers reviews that the event loop leaves to threads, and all reviews under another WSGI server.
An API server has no session, no form and no browser, so this path omits everything that the full
stack does for people: host names, cookies, CSRF, security headers, signals around each request.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import LimitedStream, WSGIRequest
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.urls import Resolver404, get_resolver
from django.utils.module_loading import import_string
from psycopg_pool import PoolTimeout

from admission.api import authentication, urls
from portal.logs import REVIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from django.http import HttpRequest, HttpResponse
    from django.urls import ResolverMatch

    from portal.graceful_shutdown import Application

URLCONF: Final = __name__
_CACHED_ADDRESSES: Final = 1024  # addresses: three for each credential of each cluster
urlpatterns = [each for each in urls.urlpatterns if str(each.pattern).startswith(REVIEWS[1:])]


class LeanRequest(WSGIRequest):
    """A request without parsed headers: the view reads and checks its body itself."""

    _encoding = "utf-8"  # as JSON requires; avoids a look-up in the settings

    def __init__(self, environ: dict[str, Any]) -> None:  # omits the parent's costly parsing
        self.environ = self.META = environ
        self.path = self.path_info = environ["PATH_INFO"]
        self.method = environ["REQUEST_METHOD"]
        self.content_type, self.content_params = "", {}
        # The view can read no more than the announced length, as in the parent class.
        content_length = environ.get("CONTENT_LENGTH", "")
        announced_length = int(content_length) if content_length.isdecimal() else 0
        self._stream: Any = LimitedStream(environ["wsgi.input"], announced_length)
        self._read_started = False
        self.resolver_match = None


@lru_cache(_CACHED_ADDRESSES)
def _resolve_admission(path: str) -> ResolverMatch:
    return get_resolver(URLCONF).resolve(path)


def find(path: str) -> ResolverMatch | None:
    """Find the view of an address of the admission endpoint; None for all others."""
    if not path.startswith(REVIEWS) or not path.isascii():
        return None
    # Only addresses that exist are cached: callers could fill the cache with others.
    try:
        return _resolve_admission(path)
    except Resolver404:
        return None


class LeanHandler:
    """Answers ``urlpatterns`` through ``ADMISSION_MIDDLEWARE``; others go to the full stack."""

    def __init__(self, others: Application) -> None:
        self._full_stack = others
        middleware_chain: Any = convert_exception_to_response(call_view)
        for middleware_path in reversed(settings.ADMISSION_MIDDLEWARE):
            middleware_chain = import_string(middleware_path)(middleware_chain)
        self._middleware_chain: Callable[[HttpRequest], HttpResponse] = middleware_chain
        self._https_only: bool = settings.SECURE_SSL_REDIRECT

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer one call; the full stack answers other addresses and plain HTTP."""
        admission_match = find(environ["PATH_INFO"])
        if admission_match is None:
            return self._full_stack(environ, start_response)
        request = LeanRequest(environ)
        if self._https_only and not request.is_secure():
            return self._full_stack(environ, start_response)
        request.resolver_match = admission_match
        try:
            response = self._middleware_chain(request)
        finally:
            # Django does this in a signal handler after each request; nobody sends signals here.
            _give_back_connections()
        status = f"{response.status_code} {response.reason_phrase}"
        content: bytes = response.content
        start_response(status, [*response.items(), ("Content-Length", str(len(content)))])
        return [content]  # the response has nothing to close


def call_view(request: HttpRequest) -> HttpResponse:
    """Call the view that the request was resolved to."""
    match = request.resolver_match
    assert match is not None  # noqa: S101 - the handler has just set it
    response: HttpResponse = match.func(request, *match.args, **match.kwargs)
    return response


def is_callers(cluster: str, secret: str) -> bool:
    """Whether a credential is this cluster's, by a query; False if the database does not answer."""
    try:
        return authentication.is_callers(cluster, secret)
    except (Error, PoolTimeout):
        return False  # the view meets the same failure, and answers it
    finally:
        _give_back_connections()


def _give_back_connections() -> None:
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is not None and not connection.in_atomic_block:  # a test is in one
        connection.close_if_unusable_or_obsolete()
