"""JSON text in and out: RawNumber, ``loads``, ``dumps`` by pieces, DeepReader without recursion.

Values are Python's own, except that a number keeps its text. ``fields`` reads an object's fields.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NoReturn

from engine.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 10_000
PLAIN_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Numbers that every database and reader spells as they were written."""
DEEPEST_NESTING: Final = 200
"""Levels of lists and maps in a document that somebody writes for the portal."""
_SPACE = re.compile(r"[ \t\n\r]*")
_ATOM = re.compile(r"true|false|null|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_JSON_TYPES = ((str, "string"), (list, "array"), (dict, "object"))
_CONSTANTS = {"true": True, "false": False, "null": None}
_STRINGS = json.JSONDecoder()
# UTF-8 has no bytes for these, but JSON can escape them.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class RawNumber(str):
    """A JSON number as it was written: ``1e3`` stays ``1e3``, and differs from the string."""

    __slots__ = ()


def loads(document: str | bytes) -> Any:
    r"""Read one JSON document; raises DecodeError.

    Numbers become RawNumber. Duplicate keys, ``NaN``, ``Infinity``, bytes that are no UTF-8 and
    more than 10,000 levels are refused. NUL and lone surrogates, written as escapes, are accepted.
    Escapes are decoded: a quantity may be written ``"\u0031"``, while ``"1\n"`` is refused as a
    quantity, as in Kubernetes.
    """
    try:
        text = document.decode("utf-8") if isinstance(document, bytes) else document
        return _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise DecodeError("", f"json: invalid UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        _refuse(error.msg, text, error.pos)
    except RecursionError:
        # The library's reader recurses; it is fast for all but hostile documents.
        return DeepReader(text).read()


def dumps(value: Any) -> str:
    """Write a value of any depth as compact JSON, each RawNumber with its own text.

    Lone surrogates are escaped, all other characters are written as they are.
    """
    # A stack of iterators: recursion ends at a thousand levels, and JSON may have ten thousand.
    pieces: list[str] = []
    containers: list[Iterator[Any]] = [iter((value,))]
    while containers:
        for item in containers[-1]:
            if isinstance(item, _Literal):
                pieces.append(item)
            elif isinstance(item, (dict, list, tuple)):
                containers.append(_json_pieces(item))
                break
            elif isinstance(item, RawNumber):
                pieces.append(str(item))
            else:
                pieces.append(_quoted(item) if isinstance(item, str) else json.dumps(item))
        else:
            containers.pop()
    return "".join(pieces)


def json_type(value: object) -> str:
    """Name the JSON type of a decoded value as Go does."""
    if isinstance(value, bool):
        return "bool"
    # RawNumber is a str, bool is an int: the order of these tests matters.
    if isinstance(value, (RawNumber, int)):
        return "number"
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")


class _Literal(str):
    """Punctuation or an encoded key on its way out."""

    __slots__ = ()


_COMMA, _OPEN, _CLOSE = _Literal(","), _Literal("["), _Literal("]")
_OPEN_MAP, _CLOSE_MAP = _Literal("{"), _Literal("}")


def _json_pieces(container: Any) -> Iterator[Any]:
    """Walk one container: punctuation, encoded keys, and values yet to be written."""
    is_map = isinstance(container, dict)
    yield _OPEN_MAP if is_map else _OPEN
    for position, member in enumerate(container):
        if position:
            yield _COMMA
        if is_map:
            yield _Literal(f"{_quoted(member)}:")
        yield container[member] if is_map else member
    yield _CLOSE_MAP if is_map else _CLOSE


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _refuse(message: str, text: str, position: int) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    reason = message[:1].lower() + message[1:]
    raise DecodeError("", f"json: {reason} at line {line}, column {column}")


def _refuse_constant(name: str) -> NoReturn:
    raise DecodeError("", f"json: {name} is not a number that JSON knows")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its entries; a duplicate key raises DecodeError."""
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    counts = Counter(key for key, _ in pairs)
    repeated = next(key for key, count in counts.items() if count > 1)
    raise DecodeError(repeated, f'json: duplicate field "{repeated}"')


_DECODER = json.JSONDecoder(
    parse_int=RawNumber,
    parse_float=RawNumber,
    parse_constant=_refuse_constant,
    object_pairs_hook=_unique,
)


class DeepReader:
    """Reads documents that are too deep for the library: the same rules without recursion."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.open: list[list[Any]] = []  # of arrays the items, of objects the pairs
        self.keys: list[str | None] = []  # the key whose value comes next; None in an array

    def read(self) -> Any:
        """Read the whole document."""
        while True:
            value = self.value()
            while value is not _UNFINISHED:
                if not self.open:
                    return self.end(value)
                value = self.attach(value)

    def value(self) -> Any:
        """Read an atom, an empty container, or go into a container."""
        char = self.peek()
        if char == '"':
            return self.string()
        if char in {"[", "{"}:
            return self.enter(char)
        atom = _ATOM.match(self.text, self.position)
        if atom is None:
            self.refuse("expecting value")
        self.position = atom.end()
        return RawNumber(atom[0]) if atom[1] else _CONSTANTS[atom[0]]

    def enter(self, bracket: str) -> Any:
        """Open a container; an empty one is closed at once."""
        self.position += 1
        self.open.append([])
        self.keys.append("" if bracket == "{" else None)
        if len(self.open) > MAX_DEPTH:
            raise DecodeError("", "json: exceeded max depth")
        if self.peek() == self.closing():
            return self.leave()
        if bracket == "{":
            self.key()
        return _UNFINISHED

    def attach(self, value: Any) -> Any:
        """Put a value into its container, then go to the next one or close."""
        key = self.keys[-1]
        self.open[-1].append(value if key is None else (key, value))
        char = self.peek()
        if char == self.closing():
            return self.leave()
        if char != ",":
            self.refuse("expecting ',' delimiter")
        self.position += 1
        if key is not None:
            self.key()
        return _UNFINISHED

    def closing(self) -> str:
        """Return the bracket that ends the innermost container."""
        return "]" if self.keys[-1] is None else "}"

    def leave(self) -> Any:
        """Close the innermost container and return it."""
        self.position += 1
        items = self.open.pop()
        return items if self.keys.pop() is None else _unique(items)

    def key(self) -> None:
        """Read a key and its colon."""
        if self.peek() != '"':
            self.refuse("expecting property name enclosed in double quotes")
        self.keys[-1] = self.string()
        if self.peek() != ":":
            self.refuse("expecting ':' delimiter")
        self.position += 1

    def string(self) -> str:
        """Read a string with the library's decoder."""
        try:
            text, self.position = _STRINGS.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            _refuse(error.msg, self.text, error.pos)
        return str(text)

    def peek(self) -> str:
        """Skip space and look at the next character, empty at the end."""
        space = _SPACE.match(self.text, self.position)
        self.position = space.end() if space else self.position
        return self.text[self.position : self.position + 1]

    def end(self, value: Any) -> Any:
        """Accept nothing behind the document."""
        if self.peek():
            self.refuse("extra data")
        return value

    def refuse(self, message: str) -> NoReturn:
        """Raise DecodeError for the text at hand."""
        _refuse(message, self.text, self.position)


_UNFINISHED: Final = object()
