"""``expect_`` and ``read_`` decoded fields by Go type: map, list, string, bool, int64, RFC 3339.

Each function raises DecodeError with the text of Go's JSON decoder for a value of another type;
null is the type's empty value. A ``go_field`` names struct, path and type as that text does:
``PodSpec.spec.overhead of type v1.ResourceList``. ``expect_`` takes the value, ``read_`` the object
that holds it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.quantity import Quantity, QuantityError
from engine.wire import RawNumber, json_type

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
# Go accepts a comma before the fraction, and neither a bare date nor a missing zone.
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_INT64: Final = 2**63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT: Final = frozenset({str})
MICRO: Final = 1_000_000
"""Microseconds of a second; times are whole microseconds since 1970."""


def shape_error(wrong: object, path: str, go_field: str) -> DecodeError:
    """Build Go's error for a value of the wrong type."""
    json_name = json_type(wrong)
    return DecodeError(path, f"json: cannot unmarshal {json_name} into Go struct field {go_field}")


def expect(raw: object, kind: type[Any], path: str, target: str) -> Any:
    """Take a value of a type whose Go field is the path itself, as in our own kinds."""
    if raw is None:
        return kind()
    if isinstance(raw, kind) and (kind is not str or type(raw) is str):
        return raw
    raise shape_error(raw, path, f"{path} of type {target}")


def decode_string_map(raw: object, path: str) -> dict[str, str]:
    """Take a map of strings whose Go field is the path itself."""
    shape = expect(raw, dict, path, "map[string]string")
    if _TEXT.issuperset(map(type, shape.values())):
        return dict(shape)
    return {key: expect(value, str, f"{path}.{key}", "string") for key, value in shape.items()}


def decode_string_list(raw: object, path: str) -> tuple[str, ...]:
    """Take a list of strings whose Go field is the path itself."""
    return tuple(
        expect(value, str, f"{path}[{index}]", "string")
        for index, value in enumerate(expect(raw, list, path, "[]string"))
    )


def expect_map(value: object, path: str, go_field: str) -> Mapping[str, Any]:
    """Take an object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise shape_error(value, path, go_field)
    return value


def expect_list(value: object, path: str, go_field: str) -> list[Any]:
    """Take an array."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise shape_error(value, path, go_field)
    return value


def expect_objects(
    value: object, path: str, go_field: str, go_type: str
) -> list[Mapping[str, Any]]:
    """Take an array of objects; a null entry is an empty object. ``go_field`` lacks its type."""
    return [
        entry
        if type(entry) is dict
        else expect_map(entry, f"{path}[{position}]", f"{go_field} of type {go_type}")
        for position, entry in enumerate(
            expect_list(value, path, f"{go_field} of type []{go_type}")
        )
    ]


def expect_string(value: object, path: str, go_field: str) -> str:
    """Take a string."""
    if value is None:
        return ""
    # RawNumber is a str, so that a number keeps its text, but no JSON string.
    if not isinstance(value, str) or isinstance(value, RawNumber):
        raise shape_error(value, path, go_field)
    return value


def expect_bool(value: object, path: str, go_field: str) -> bool:
    """Take a boolean."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise shape_error(value, path, go_field)
    return value


def expect_strings(value: object, path: str, go_field: str) -> tuple[str, ...]:
    """Take an array of strings; ``go_field`` ends like ``of type []v1.ResourceQuotaScope``."""
    one = go_field.replace(" of type []", " of type ")
    items = expect_list(value, path, go_field)
    return tuple(expect_string(item, f"{path}[{i}]", one) for i, item in enumerate(items))


def expect_string_map(value: object, path: str, go_field: str) -> dict[str, str]:
    """Take a map of strings; ``go_field`` ends like ``of type map[string]string``."""
    one = go_field.replace(" of type map[string]", " of type ")
    items = expect_map(value, path, go_field)
    return {key: expect_string(item, f"{path}[{key}]", one) for key, item in items.items()}


def expect_resource_list(value: object, path: str, go_field: str) -> dict[str, Quantity]:
    """Take a map of quantities as they stand; a null quantity is zero. ``go_field`` lacks its type.

    An entry that is no quantity raises the quantity's own text.
    """
    amounts = expect_map(value, path, f"{go_field} of type v1.ResourceList")
    quantities: dict[str, Quantity] = {}
    for name, amount in amounts.items():
        try:
            quantities[name] = Quantity.parse_json(amount)
        except QuantityError as error:
            raise DecodeError(f"{path}[{name}]", error.detail, amount) from error
    return quantities


def read_map(parent: Mapping[str, Any], key: str, path: str, go_field: str) -> Mapping[str, Any]:
    """Read a nested object; ``path`` is the object's own."""
    return expect_map(parent.get(key), path, go_field)


def read_text(parent: Mapping[str, Any], key: str, path: str, go_field: str) -> str:
    """Read a string; ``path`` is that of ``parent``."""
    raw = parent.get(key)
    return raw if type(raw) is str else expect_string(raw, f"{path}.{key}", go_field)


def read_integer(parent: Mapping[str, Any], key: str, path: str, go_field: str) -> int | None:
    """Read an int64; absent and null are None. ``go_field`` lacks its type."""
    raw = parent.get(key)
    if raw is None:
        return None
    key_path = f"{path}.{key}"
    if json_type(raw) != "number":
        raise shape_error(raw, key_path, f"{go_field} of type int64")
    digits = str(raw)
    # Go reads no fraction and no exponent into an integer, not even 1e3.
    number = int(digits) if _INTEGER.fullmatch(digits) else _INT64
    if not -_INT64 <= number < _INT64:
        detail = f"json: cannot unmarshal number {digits} into Go struct field {go_field}"
        raise DecodeError(key_path, f"{detail} of type int64")
    return number


def read_time(parent: Mapping[str, Any], key: str, path: str) -> int | None:
    """Read a ``metav1.Time`` as whole microseconds since 1970; absent and null are None."""
    raw = parent.get(key)
    if raw is None:
        return None
    where = f"{path}.{key}"
    return parse_time(expect_string(raw, where, f"ObjectMeta.{where} of type v1.Time"), where)


def parse_time(text: str, path: str) -> int:
    """Read an RFC 3339 time as whole microseconds since 1970."""
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
