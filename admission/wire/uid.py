"""Find the uid in a review that cannot be parsed, for its refusal."""

from __future__ import annotations

import json
import re
from typing import Final

UID_WINDOW: Final = 4096
_UID_DEPTH: Final = 2
_TOKENS = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:])', re.DOTALL)


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
