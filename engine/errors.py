"""``FieldPath``, ``FieldError`` of an ErrorType with a bad value, DecodeError; Kubernetes' words.

Source: ``k8s.io/apimachinery/pkg/util/validation/field/errors.go`` and ``path.go``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ErrorType(StrEnum):
    """The kind of a field error; the value is the text that Kubernetes prints."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    NOT_SUPPORTED = "Unsupported value"
    NOT_FOUND = "Not found"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"

    @property
    def cause(self) -> str:
        """The ``reason`` of the matching entry in ``status.details.causes``."""
        return _CAUSES[self]


_CAUSES = {
    ErrorType.REQUIRED: "FieldValueRequired",
    ErrorType.INVALID: "FieldValueInvalid",
    ErrorType.DUPLICATE: "FieldValueDuplicate",
    ErrorType.FORBIDDEN: "FieldValueForbidden",
    ErrorType.NOT_SUPPORTED: "FieldValueNotSupported",
    ErrorType.NOT_FOUND: "FieldValueNotFound",
    ErrorType.TOO_LONG: "FieldValueTooLong",
    ErrorType.TOO_MANY: "FieldValueTooMany",
}
_WITHOUT_VALUE = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG})


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path into an object: ``FieldPath("spec").child("limits").index(0).key("cpu")``."""

    text: str = ""

    def child(self, *names: str) -> FieldPath:
        """Step into named fields."""
        joined_names = ".".join(names)
        return FieldPath(f"{self.text}.{joined_names}" if self.text else joined_names)

    def index(self, position: int) -> FieldPath:
        """Step into a list entry."""
        return FieldPath(f"{self.text}[{position}]")

    def key(self, name: str) -> FieldPath:
        """Step into a map entry."""
        return FieldPath(f"{self.text}[{name}]")

    def __str__(self) -> str:
        return self.text


def render_value(value: object) -> str:
    """Render a value as Go's ``encoding/json`` does: compact, with ``<>&`` escaped."""
    json_text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        json_text = json_text.replace(char, f"\\u{ord(char):04x}")
    return json_text


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding about one field of an object.

    ``bad_value`` is JSON-shaped: quantities as their text, lists and maps as such.
    """

    type: ErrorType
    field: str
    bad_value: object = None
    detail: str = ""

    @property
    def message(self) -> str:
        """The text without the path, as in ``status.details.causes[].message``."""
        message_parts: list[str] = [self.type.value]
        if self.type not in _WITHOUT_VALUE:
            message_parts.append(render_value(self.bad_value))
        if self.detail:
            message_parts.append(self.detail)
        return ": ".join(message_parts)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def __hash__(self) -> int:
        return hash((self.type, self.field, self.detail))  # a bad value may be a list


def bracketed(texts: Iterable[str]) -> str:
    """Join texts as Go's aggregate of errors: without duplicates, in brackets if several."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def sort_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Sort errors by path and text, without duplicates; Go iterates maps in random order."""
    by_text = {str(error): error for error in errors}  # a bad value may be a list: not hashable
    return tuple(by_text[text] for text in sorted(by_text, key=lambda t: (by_text[t].field, t)))


def invalid_message(kind: str, name: str, errors: Iterable[FieldError]) -> str:
    """Word the API server's 422 answer."""
    return f'{kind} "{name}" is invalid: {bracketed(str(e) for e in errors)}'


class DecodeError(ValueError):
    """An object that the API server could not decode (its HTTP 400).

    ``field`` is the path of the value, ``detail`` the text after
    ``<Kind> in version "<v>" cannot be handled as a <Kind>: ``. ``bad_value`` is the text of an
    unreadable quantity, None for other values.
    """

    def __init__(self, field: str, detail: str, bad_value: object = None) -> None:
        super().__init__(detail)
        self.bad_value = bad_value
        self.field = field
        self.detail = detail
