"""Lines of YAML in coloured pieces, as ``render`` writes them; other texts stay uncoloured."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_KEY: Final = re.compile(
    r"(?P<start>\s*(?:- )*)(?P<key>[^\s:#-][^:]*|\"[^\"]*\")(?P<end>:(?:\s+|$))"
)
_ITEM: Final = re.compile(r"\s*(?:- )+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


class Piece(NamedTuple):
    """A part of a line: ``look`` is ``key``, ``value``, ``number`` or empty."""

    text: str
    look: str = ""
    is_marked: bool = False


def pieces_of(line: str, *, is_marked: bool = False) -> tuple[Piece, ...]:
    """The pieces of a line; its value is marked where it differs from another line's."""
    found = _KEY.match(line)
    if found:
        start = [Piece(found["start"]), Piece(found["key"], "key"), Piece(found["end"])]
        value = line[found.end() :]
    else:
        dash = _ITEM.match(line)
        at = dash.end() if dash else 0
        start, value = [Piece(line[:at])], line[at:]
    look = "number" if _NUMBER.fullmatch(value) else "value"
    return tuple(piece for piece in (*start, Piece(value, look, is_marked)) if piece.text)
