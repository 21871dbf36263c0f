"""Plain YAML 1.1 scalars: texts of true, null, numbers to values; texts that need no quotes.

Source: the behaviour of kubectl, which converts YAML to JSON before it reads types.
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


def resolve_plain(plain: str) -> object:
    """The JSON value of an unquoted scalar: ``None``, ``bool``, RawNumber or ``str``."""
    if plain in NULL:
        return None
    if plain in TRUE or plain in FALSE:
        return plain in TRUE
    if plain[0] in "0123456789+-." and len(plain) <= _LONGEST_NUMBER:
        return _plain_number(plain)
    return plain


def _plain_number(plain: str) -> object:
    based_match = _BASED.fullmatch(plain)
    if based_match:
        sign, *texts = based_match.groups()
        plain, base = next((t, b) for t, b in zip(texts, (16, 2, 8), strict=True) if t is not None)
        digits = plain.replace("_", "")
        return RawNumber(sign.replace("+", "") + str(int(digits, base))) if digits else "0"
    if _INTEGER.fullmatch(plain):
        return RawNumber(str(int(plain.replace("_", ""))))
    if _FLOAT.fullmatch(plain) and not _SPECIAL.fullmatch(plain):
        return _through_float(plain)
    return plain


def _through_float(plain: str) -> object:
    """Kubectl converts a number with a point or an exponent through a 64-bit float."""
    float_value = float(plain)
    if math.isinf(float_value):
        return plain
    if float_value.is_integer() and abs(float_value) < 1e21:  # noqa: PLR2004  from there on Go writes exponents
        return RawNumber(str(int(float_value)))
    return RawNumber(repr(float_value))


def is_plainly_safe(text: str) -> bool:
    """Whether every reader of YAML 1.1 or 1.2 reads the unquoted text as this string."""
    return bool(_NEEDS_NO_QUOTES.fullmatch(text)) and text not in TRUE | FALSE | NULL


_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?", re.ASCII)
