"""Read single fields of objects, with Go's texts for what cannot be decoded."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.wire import expect_list, expect_map, expect_string, json_type, shape_error

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_INT64: Final = 2**63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = 1_000_000
"""Times are whole microseconds since 1970, so many of them to a second."""


def read_integer(parent: Mapping[str, Any], key: str, path: str, go_field: str) -> int | None:
    """Read an int64; absent and null are None. ``go_field`` is ``Struct.path`` without a type."""
    raw = parent.get(key)
    if raw is None:
        return None
    where = f"{path}.{key}" if path else key
    if json_type(raw) != "number":
        raise shape_error(raw, where, f"{go_field} of type int64")
    text = str(raw)
    number = int(text) if _INTEGER.fullmatch(text) else _INT64
    if not -_INT64 <= number < _INT64:
        detail = f"json: cannot unmarshal number {text} into Go struct field {go_field}"
        raise DecodeError(where, f"{detail} of type int64")
    return number


def read_objects(raw: object, path: str, go_field: str, go_type: str) -> list[Mapping[str, Any]]:
    """Read a list of objects; null is empty, a null entry an empty object."""
    entries = expect_list(raw, path, f"{go_field} of type []{go_type}")
    one = f"{go_field} of type {go_type}"
    return [expect_map(entry, f"{path}[{i}]", one) for i, entry in enumerate(entries)]


def read_time(parent: Mapping[str, Any], key: str, path: str) -> int | None:
    """Read a ``metav1.Time`` as whole microseconds since 1970; absent and null are None."""
    raw = parent.get(key)
    if raw is None:
        return None
    where = f"{path}.{key}"
    return parse_time(expect_string(raw, where, f"ObjectMeta.{where} of type v1.Time"), where)


def parse_time(text: str, path: str) -> int:
    """Read an RFC 3339 time as whole microseconds since 1970; raises DecodeError."""
    try:
        moment = (
            datetime.fromisoformat(text.replace(",", ".")) if _RFC_3339.fullmatch(text) else None
        )
    except ValueError:
        moment = None
    if moment is None:
        detail = f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{text}" as "2006"'
        raise DecodeError(path, detail)
    return (moment - _EPOCH) // timedelta(microseconds=1)
