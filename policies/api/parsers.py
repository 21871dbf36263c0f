"""Read JSON bodies as the engine does: numbers keep their text, so no float touches a quantity."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from engine.errors import DecodeError
from engine.wire import loads

if TYPE_CHECKING:
    from collections.abc import Mapping


class ManifestParser(JSONParser):
    """JSON with exact numbers; duplicate keys are refused."""

    def parse(
        self,
        stream: IO[Any],
        _media_type: str | None = None,
        _parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Decode the body; raises ``ParseError``."""
        try:
            return loads(stream.read())
        except DecodeError as error:
            raise ParseError(error.detail) from error
