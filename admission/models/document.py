"""DocumentField: the parts of a row that are read together, one compressed JSON; ``in_document``.

Each decision writes five of them. Compressed one by one by the database they would take half as
much space again, and the database a third more of its time. Source: ADR 0023.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import orjson
import zstandard
from django.db import models

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.db.backends.base.base import BaseDatabaseWrapper

_EMPTY: Final[Mapping[str, Callable[[], Any]]] = {
    **dict.fromkeys(("groups", "policies", "trace", "charges"), list),
    "request": dict,
}
PARTS: Final = tuple(_EMPTY)
"""The parts, in the order in which they are written."""
IN_DOCUMENT: Final = ("document", *(f"old_{part}" for part in PARTS))
"""The columns that hold them: rows of before 0.1.0's last migration have one for each."""
_LEVEL: Final = 1


class _Codec(threading.local):
    """The compressor of a thread: it may not be shared, and costs more to make than to use."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_codec: Final = _Codec()


def pack(parts: Mapping[str, Any]) -> bytes:
    """Compress the parts of a row; a text is JSON already, as in the writer's rows."""
    members = [f'"{part}":{_json_text(parts[part])}' for part in PARTS if part in parts]
    return _codec.compress(f"{{{','.join(members)}}}".encode())


def unpack(document: bytes) -> dict[str, Any]:
    """The parts of a row, parsed."""
    parts: dict[str, Any] = orjson.loads(_codec.decompress(document))
    return parts


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


if TYPE_CHECKING:
    _BinaryField = models.BinaryField[Any, Any]
else:
    _BinaryField = models.BinaryField


class DocumentField(_BinaryField):
    """A column of packed parts; in Python a dictionary, or what ``pack`` returned."""

    def from_db_value(self, value: Any, *_: object) -> dict[str, Any] | None:
        """Unpack what the database holds."""
        return None if value is None else unpack(bytes(value))

    def get_db_prep_value(
        self,
        value: Any,
        connection: BaseDatabaseWrapper,
        prepared: bool = False,  # noqa: FBT001, FBT002 - Django's
    ) -> Any:
        """Pack what is stored."""
        packed = pack(value) if isinstance(value, dict) else value
        return super().get_db_prep_value(packed, connection, prepared)


def with_parts(row: dict[str, Any]) -> dict[str, Any]:
    """A row of values with its parts in place of the columns that hold them."""
    document, *older = map(row.pop, IN_DOCUMENT)
    parts = dict(zip(PARTS, older, strict=True)) if document is None else document
    found = ((part, parts.get(part)) for part in PARTS)
    return {**row, **{p: _EMPTY[p]() if value is None else value for p, value in found}}


def in_document(part: str) -> Any:
    """A property that is one part of ``document``, or of the column that older rows have for it."""

    def read(event: Any) -> Any:
        document = event.document
        found = getattr(event, f"old_{part}") if document is None else document.get(part)
        return _EMPTY[part]() if found is None else found

    def write(event: Any, value: Any) -> None:
        event.document = {**(event.document or {}), part: value}

    return property(read, write)
