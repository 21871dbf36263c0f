"""Decode JSON bytes, quickly where that is proven to be exact.

The exact reader is the engine's own; the quick one is a library that is less strict.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import orjson

from engine.wire import RawNumber, loads

PLAIN_LENGTH: Final = 16_384  # bytes; no text or list in it can be too long for a record
_LONGEST_QUICK: Final = 512 * 1024  # bytes
_READER: Final = msgspec.json.Decoder(float_hook=RawNumber)
_GO_ESCAPES: Final = ((rb"\u003c", b"<"), (rb"\u003e", b">"), (rb"\u0026", b"&"))
_ESCAPE_SIGN: Final = "␛".encode()
_DOLLAR_NAME: Final = re.compile(rb'"\$(?:[^"\\]|\\.)*":')


class UnusualError(ValueError):
    """The quick way is not proven to be exact for this text."""


def read_document(body: bytes) -> tuple[Any, bool]:
    """Read JSON the quick way where that is sure to mean the same; raises ``DecodeError``.

    Returns also whether it is plain, as ``AdmissionRequest`` has it. A long one is not read by
    the library, which would let nobody else have a turn until it is read.
    """
    if len(body) > _LONGEST_QUICK:
        return loads(body), False
    try:
        value, text = read_usual(body.removesuffix(b"\n"))
    except UnusualError:
        return loads(body), False
    return value, is_plain(text)


def read_usual(body: bytes) -> tuple[Any, bytes]:
    """Read JSON the quick way, and how it is written again; raises ``UnusualError``.

    What was read is written again. Only one without a key twice, with no number but whole ones
    in their usual spelling (which come as ``int``) and no text spelled oddly comes out as it went
    in. Go's own spelling of ``<``, ``>`` and ``&`` is not odd. No others are read.
    """
    try:
        value = _READER.decode(body)
        text = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        raise UnusualError from None
    if text == body or text == _without_go_escapes(body):
        return value, text
    raise UnusualError


def is_plain(text: bytes) -> bool:
    """Whether a short document has nothing that records would spell otherwise.

    That is: NUL, the record's own escape sign, and names that begin with ``$``.
    """
    if len(text) > PLAIN_LENGTH or b"\\u0000" in text:
        return False
    if not text.isascii() and _ESCAPE_SIGN in text:
        return False
    return b"$" not in text or _DOLLAR_NAME.search(text) is None


def _without_go_escapes(body: bytes) -> bytes:
    """The same document with three signs written plainly.

    An escaped backslash before ``u003c`` is torn apart here: that makes no valid text any more.
    """
    for escaped, plain in _GO_ESCAPES:
        body = body.replace(escaped, plain)
    return body
