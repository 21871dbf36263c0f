"""``bound_of``: BodyLimit of a call by address and credential, before its body is read."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

from django.conf import settings

from admission.api.authentication import bearer, is_known
from admission.api.body import DRAIN_CAP
from admission.wire.review import MAX_BODY
from portal.serving.bodies import BodyLimit
from portal.serving.lean import find, is_callers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from django.urls import ResolverMatch

    from portal.serving.request_head import RequestHead

SHORT: Final = 64 * 1024
"""Bytes of a body without a session or token, and of a sign-in."""
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_SIGNING_IN: Final = frozenset({"/accounts/login/", "/admin/login/", "/api/v1/token/"})
# The rest of a review that is too large is read and dropped: an API server that is still sending
# would not read its denial.
_REVIEW: Final = BodyLimit(most=DRAIN_CAP, kept=MAX_BODY + 1, is_known=True)
_STRANGER: Final = BodyLimit(most=SHORT, kept=SHORT)


async def bound_of(
    head: RequestHead, in_thread: Callable[..., Awaitable[bool]]
) -> BodyLimit | None:
    """The limit of a call's body; None if the answer does not depend on the body.

    ``in_thread(function, *arguments)`` looks up a credential that is not in memory.
    """
    if head.method in _BODILESS:
        return None
    if b"content-length" not in head and b"transfer-encoding" not in head:
        return None
    review_match = find(head.path)
    if review_match is not None:
        return await _bound_of_review(review_match, head, in_thread)
    if head.path in _SIGNING_IN or not _names_somebody(head):
        return _STRANGER
    most_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return BodyLimit(most=most_bytes, kept=most_bytes)


async def _bound_of_review(
    review_match: ResolverMatch, head: RequestHead, in_thread: Callable[..., Awaitable[bool]]
) -> BodyLimit | None:
    # The view refuses each of the calls below by their headers, without reading a body.
    if head.method != "POST" or b"content-length" not in head:
        return None
    if head.get(b"content-encoding").lower() not in {"", "identity"}:
        return None
    cluster = review_match.kwargs["cluster"]
    credential = review_match.kwargs.get("key") or bearer(head.get(b"authorization"))
    if is_known(cluster, credential) or await in_thread(is_callers, cluster, credential):
        return _REVIEW
    return None


def _names_somebody(head: RequestHead) -> bool:
    """Whether the headers have a token or a session; only the database knows if it is valid."""
    if head.get(b"authorization"):
        return True
    try:
        return settings.SESSION_COOKIE_NAME in SimpleCookie(head.get(b"cookie"))
    except CookieError:
        return False
