"""A body's JSON decoded quickly (msgspec) where usual, ``is_plain``; uid found in faulty bodies.

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
_QUICK_READER: Final = msgspec.json.Decoder(float_hook=RawNumber)
_GO_ESCAPES: Final = ((rb"\u003c", b"<"), (rb"\u003e", b">"), (rb"\u0026", b"&"))
_ESCAPE_SIGN: Final = "␛".encode()
_DOLLAR_NAME: Final = re.compile(rb'"\$(?:[^"\\]|\\.)*":')
UID_WINDOW: Final = 4096
_UID_DEPTH: Final = 2
_JSON_TOKENS = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:])', re.DOTALL)


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
        document, rewritten = read_usual(body.removesuffix(b"\n"))
    except UnusualError:
        return loads(body), False
    return document, is_plain(rewritten)


def read_usual(body: bytes) -> tuple[Any, bytes]:
    """Read JSON quickly; also returns the text written again; raises ``UnusualError``.

    What was read is written again. Only one without a key twice, with no number but whole ones
    in their usual spelling (which come as ``int``) and no text spelled oddly comes out as it went
    in. Go's own spelling of ``<``, ``>`` and ``&`` is not odd. No others are read.
    """
    try:
        # A fraction comes as RawNumber, which is written again as a text: not equal, so unusual.
        document = _QUICK_READER.decode(body)
        rewritten = orjson.dumps(document, option=orjson.OPT_STRICT_INTEGER)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        raise UnusualError from None
    if rewritten == body or rewritten == _without_go_escapes(body):
        return document, rewritten
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
    key, is_value = "", False
    for token in _JSON_TOKENS.finditer(head):
        string, bracket = token.group(1), token.group(2)
        if string is None:
            path, is_value = _follow(path, key, bracket)
            continue
        if is_value and key == "uid" and path[1:] == ["request"] and len(path) == _UID_DEPTH:
            return _unescape_string(string)
        key, is_value = string, False
    return ""


def _follow(path: list[str], key: str, bracket: str) -> tuple[list[str], bool]:
    """Follow one structural sign: the names of the open brackets, and whether a value follows."""
    if bracket in "{[":
        return [*path, key if path else ""], False
    if bracket in "}]":
        return path[:-1], False
    return path, True


def _unescape_string(json_string: str) -> str:
    try:
        return str(json.loads(f'"{json_string}"', strict=False))
    except ValueError:
        return ""


def uid_despite_faults(body: bytes) -> str:
    """Find ``request.uid`` leniently: no UTF-8 is needed, and of a name twice the last one counts.

    Only for bodies that are refused in any case.
    """
    try:
        uid = json.loads(body.decode("utf-8", "replace"))["request"]["uid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return uid if type(uid) is str else ""
