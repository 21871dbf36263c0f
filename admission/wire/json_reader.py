"""Decode a review's JSON, quickly where that is exact, and find the uid in what is no JSON.

The exact reader is the engine's own; the quick one is a library that is less strict.
"""

from __future__ import annotations

import json
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
UID_WINDOW: Final = 4096
_UID_DEPTH: Final = 2
_TOKENS = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:])', re.DOTALL)


class UnusualError(ValueError):
    """The quick reader may not be exact for this text."""


def read_document(body: bytes) -> tuple[Any, bool]:
    """Read JSON, quickly where that is exact; raises ``DecodeError``.

    Also returns whether it is plain, as in ``AdmissionRequest``. The library does not read long
    documents: it would hold the interpreter lock until the end.
    """
    if len(body) > _LONGEST_QUICK:
        return loads(body), False
    try:
        value, text = read_usual(body.removesuffix(b"\n"))
    except UnusualError:
        return loads(body), False
    return value, is_plain(text)


def read_usual(body: bytes) -> tuple[Any, bytes]:
    """Read JSON quickly; also returns the text written again; raises ``UnusualError``.

    What was read is written again. Only one without a key twice, with no number but whole ones
    in their usual spelling (which come as ``int``) and no text spelled oddly comes out as it went
    in. Go's own spelling of ``<``, ``>`` and ``&`` is not odd. No others are read.
    """
    try:
        # A fraction comes as RawNumber, which is written again as a text: not equal, so unusual.
        value = _READER.decode(body)
        text = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        raise UnusualError from None
    if text == body or text == _without_go_escapes(body):
        return value, text
    raise UnusualError


def is_plain(text: bytes) -> bool:
    """Whether a document is short and needs no escape in the record.

    That is: NUL, the record's own escape sign, and names that begin with ``$``.
    """
    if len(text) > PLAIN_LENGTH or b"\\u0000" in text:
        return False
    if not text.isascii() and _ESCAPE_SIGN in text:
        return False
    return b"$" not in text or _DOLLAR_NAME.search(text) is None


def _without_go_escapes(body: bytes) -> bytes:
    """The same document with three signs unescaped.

    An escaped backslash before ``u003c`` is split here: the result is no valid JSON any more.
    """
    for escaped, plain in _GO_ESCAPES:
        body = body.replace(escaped, plain)
    return body


def find_uid(body: bytes) -> str:
    """Find ``request.uid`` in the first 4 KiB of a body that is not JSON as a whole; else empty.

    An API server writes it first of all, so that it is there even when the rest is cut off.
    """
    head = body[:UID_WINDOW].decode("utf-8", "replace")
    path: list[str] = []
    name, is_value = "", False
    for match in _TOKENS.finditer(head):
        text, sign = match.group(1), match.group(2)
        if text is None:
            path, is_value = _step(path, name, sign)
            continue
        if is_value and name == "uid" and path[1:] == ["request"] and len(path) == _UID_DEPTH:
            return _unescape(text)
        name, is_value = text, False
    return ""


def _step(path: list[str], name: str, sign: str) -> tuple[list[str], bool]:
    """Follow one structural sign: the names of the open brackets, and whether a value follows."""
    if sign in "{[":
        return [*path, name if path else ""], False
    if sign in "}]":
        return path[:-1], False
    return path, True


def _unescape(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return ""


def uid_despite_faults(body: bytes) -> str:
    """Find ``request.uid`` leniently: no UTF-8 is needed, and of a name twice the last one counts.

    Only for bodies that are refused in any case.
    """
    try:
        found = json.loads(body.decode("utf-8", "replace"))["request"]["uid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return found if type(found) is str else ""
