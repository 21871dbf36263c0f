"""Manifests that a test keeps: ``keepable`` within bounds and of plain numbers, ``withheld``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.names import LAST_APPLIED
from engine.wire import PLAIN_INTEGER, RawNumber

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_BYTES: Final = 64 * 1024
"""The most that the objects of one test take as JSON, nearly."""
MOST_LEVELS: Final = 32
_SECRET_MEMBERS: Final = ("data", "stringData")


def keepable(value: Any, path: str) -> Any:
    """A decoded JSON value as one that is kept; raises DecodeError.

    It may be ``MOST_BYTES`` large and ``MOST_LEVELS`` deep. Numbers that are no plain integers are
    refused, since databases would spell them anew.
    """
    _check_bounds(value, path)
    return _kept(value, path, as_texts=False)


def plain(value: Any) -> Any:
    """A decoded JSON value with plain integers; other numbers become texts, as quantities may be.

    It recurses: only for what an API server or a policy made.
    """
    return _kept(value, "", as_texts=True)


def _check_bounds(value: Any, path: str) -> None:
    """A stack and no recursion: bodies may nest deeper than Python's calls."""
    size = 0
    levels: list[Iterator[Any]] = [iter((value,))]
    while levels:
        for part in levels[-1]:
            size += _size_of(part)
            if size > MOST_BYTES:
                raise DecodeError(path, f"must take at most {MOST_BYTES // 1024} KiB")
            if isinstance(part, dict | list) and part:
                if len(levels) > MOST_LEVELS:
                    raise DecodeError(path, f"must have at most {MOST_LEVELS} levels")
                levels.append(iter(part.values() if isinstance(part, dict) else part))
                break
        else:
            levels.pop()


def _size_of(part: Any) -> int:
    """About the bytes of one value without its members, but with their names."""
    if isinstance(part, dict):
        return 2 + sum(len(str(name)) + 4 for name in part)
    if isinstance(part, str):
        return 3 + (len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass")))
    return 6


def _kept(value: Any, path: str, *, as_texts: bool) -> Any:
    if isinstance(value, RawNumber):
        if PLAIN_INTEGER.fullmatch(value):
            return int(value)
        if as_texts:
            return str(value)
        raise DecodeError(path, f'the number {value[:40]} must be in quotes: "{value[:40]}"')
    if isinstance(value, dict):
        return {
            name: _kept(member, f"{path}.{name}", as_texts=as_texts)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [
            _kept(member, f"{path}[{index}]", as_texts=as_texts)
            for index, member in enumerate(value)
        ]
    return value


def withheld(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what no rule reads and may be secret, of the same shape.

    The data of a Secret, the values of environment variables, and the copy of all this that
    kubectl keeps in an annotation.
    """
    shown = {
        name: member
        for name, member in obj.items()
        if obj.get("kind") != "Secret" or name not in _SECRET_MEMBERS
    }
    metadata = shown.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict) and LAST_APPLIED in annotations:
        kept = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
        shown["metadata"] = {**metadata, "annotations": kept}
    return {name: _without_values(member) for name, member in shown.items()}


def _without_values(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_values(member) for member in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _names_alone(member) if name == "env" else _without_values(member)
        for name, member in part.items()
    }


def _names_alone(variables: Any) -> Any:
    if not isinstance(variables, list):
        return _without_values(variables)
    return [
        {**variable, "value": ""}
        if isinstance(variable, dict) and variable.get("value")
        else variable
        for variable in variables
    ]
