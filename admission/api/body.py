"""``read_body`` within MAX_BODY: 411, 415, the rest drained; a turn for large bodies, gc off."""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rest_framework.exceptions import APIException

from admission.wire.review import MAX_BODY, too_large
from admission.writer import OverBudgetError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from admission.decide import Call

DRAIN_CAP: Final = 24 * 1024 * 1024
_DRAIN_PIECE: Final = 64 * 1024


class LengthRequired(APIException):
    """A body without Content-Length."""

    status_code = 411
    default_detail = "Content-Length is required."
    default_code = "LengthRequired"


class EncodedBody(APIException):
    """A compressed body: API servers send none, and a small one may unpack to a huge one."""

    status_code = 415
    default_detail = "Content-Encoding is not accepted."
    default_code = "UnsupportedMediaType"


def read_body(request: HttpRequest) -> bytes:
    """The whole body, at most ``MAX_BODY`` bytes.

    Raises:
        ReviewError, NotAReviewError: for a larger one.
        LengthRequired, EncodedBody: for a body that no API server sends.
    """
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise EncodedBody
    if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        raise LengthRequired
    body = request.read(MAX_BODY + 1)
    if len(body) <= MAX_BODY:
        return body
    # A caller that is still sending would not read the answer: take the rest in, up to a cap.
    drained = 0
    while drained < DRAIN_CAP and (piece := request.read(_DRAIN_PIECE)):
        drained += len(piece)
    raise too_large(body)


LARGE: Final = 256 * 1024
"""Bytes from which on a review waits for its turn."""
_SWITCH_INTERVAL: Final = 0.00005  # seconds until a thread that waits for the interpreter gets it
_large_turn: Final = threading.Lock()


@contextmanager
def in_turn(call: Call) -> Iterator[None]:
    """Wait for the turn of a large body; raises ``OverBudgetError`` if it comes too late."""
    if not _large_turn.acquire(timeout=max(call.budget - call.spent, 0)):
        raise OverBudgetError
    # Others get the interpreter a hundred times as often as by default, and no collection of the
    # many new objects stops them all.
    switch_interval, is_collecting = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(switch_interval)
        if is_collecting:
            gc.enable()
        _large_turn.release()
