"""Resolve plain YAML scalars as kubectl does: YAML 1.1, numbers through JSON.

Source: the behaviour of kubectl, whose YAML is turned into JSON before anything looks at types.
"""

from __future__ import annotations

import math
import re

from engine.wire import RawNumber

TRUE = frozenset("y Y yes Yes YES on On ON true True TRUE".split())
FALSE = frozenset("n N no No NO off Off OFF false False FALSE".split())
NULL = frozenset(["", "~", "null", "Null", "NULL"])
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*", re.ASCII)
_BASED = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F_]+)|[bB]([01_]+)|[oO]?([0-7_]+))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 64


def resolve_plain(text: str) -> object:
    """The JSON value of an unquoted scalar: ``None``, ``bool``, RawNumber or ``str``."""
    if text in NULL:
        return None
    if text in TRUE or text in FALSE:
        return text in TRUE
    if text[0] in "0123456789+-." and len(text) <= _LONGEST_NUMBER:
        return _number(text)
    return text


def _number(text: str) -> object:
    based = _BASED.fullmatch(text)
    if based:
        return _based(*based.groups())
    if _INTEGER.fullmatch(text):
        return RawNumber(str(int(text.replace("_", ""))))
    if _FLOAT.fullmatch(text) and not _SPECIAL.fullmatch(text):
        return _through_float(text)
    return text


def _based(sign: str, hexa: str | None, binary: str | None, octal: str | None) -> object:
    digits, base = next((d, b) for d, b in ((hexa, 16), (binary, 2), (octal, 8)) if d is not None)
    digits = digits.replace("_", "")
    return RawNumber(sign.replace("+", "") + str(int(digits, base))) if digits else "0"


def _through_float(text: str) -> object:
    """A number with a point or an exponent goes through a 64-bit float on its way to JSON."""
    value = float(text)
    if math.isinf(value):
        return text
    if value.is_integer() and abs(value) < 1e21:  # noqa: PLR2004  where Go turns to exponents
        return RawNumber(str(int(value)))
    return RawNumber(repr(value))


def is_plainly_safe(text: str) -> bool:
    """Whether an unquoted scalar is read back as this very string by any YAML 1.1 or 1.2 reader."""
    return bool(_SAFE.fullmatch(text)) and text not in TRUE | FALSE | NULL


_SAFE = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
