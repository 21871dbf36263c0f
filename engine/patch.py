"""JSON Patch: PatchOperation, pointers of tokens, PatchBuilder that copies nodes it comes to own.

Source: RFC 6902 and RFC 6901. Patches are never found by comparison. The builder copies only the
containers on the path to a change and shares everything else with the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Token = str | int


class Absent:
    """The type of ``ABSENT``."""


ABSENT: Final = Absent()
"""Marks an absent field where None is the value null."""


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One operation: ``op``, pointer, JSON value.

    ``add`` sets a key of a map, present or not; ``replace`` sets a list entry, since ``add`` would
    insert one; ``remove`` has no value.
    """

    op: str
    path: str
    value: Any = None

    def to_json(self) -> dict[str, Any]:
        """Render it as RFC 6902 does."""
        if self.op == "remove":
            return {"op": self.op, "path": self.path}
        return {"op": self.op, "path": self.path, "value": self.value}


def escape_pointer(token: str) -> str:
    """Escape one reference token: ``~`` first, then ``/``."""
    return token.replace("~", "~0").replace("/", "~1")


def pointer(tokens: Sequence[Token]) -> str:
    """Write a path, map keys and list positions, as a JSON pointer."""
    texts = [escape_pointer(token) if isinstance(token, str) else str(token) for token in tokens]
    return "".join([f"/{text}" for text in texts])


def apply_patch(
    original: Mapping[str, Any], operations: Sequence[PatchOperation]
) -> Mapping[str, Any]:
    """Apply operations that a builder wrote for an object of the same shape."""
    if not operations:
        return original
    builder = PatchBuilder(original)
    for operation in operations:
        tokens = operation.path.split("/")[1:]
        if "~" in operation.path:
            # In this order, so that ``~01`` becomes ``~1`` and no slash.
            tokens = [token.replace("~1", "/").replace("~0", "~") for token in tokens]
        builder.put(tokens, operation.value)
    return builder.object


class PatchBuilder:
    """Changes a copy of an object: ``object`` is the present state, ``operations`` lead to it.

    Maps that are missing or null on the path to a change are added by operations of their own.
    """

    __slots__ = ("_owned", "object", "operations")

    def __init__(self, original: Mapping[str, Any]) -> None:
        self.object: dict[str, Any] = dict(original)
        self.operations: list[PatchOperation] = []
        # The copies made so far, kept alive so that no identity is ever reused for another object.
        self._owned: dict[int, Any] = {id(self.object): self.object}

    def set(self, path: Sequence[Token], value: Any) -> bool:
        """Put ``value`` at ``path``; returns False and records nothing if it is there already.

        Lists on the path must exist and be long enough. Raises LookupError or TypeError where the
        object lacks the shape that the path assumes.
        """
        parent = self._open(path[:-1])
        last_token: Any = path[-1]
        if isinstance(parent, dict) and last_token in parent and parent[last_token] == value:
            return False
        parent[last_token] = value
        self._write_down(parent, path, value)
        return True

    def put(self, path: Sequence[str], value: Any) -> None:
        """Put ``value`` at the path of an operation, without recording another."""
        node: Any = self.object
        for token in path[:-1]:
            key = _token_key(node, token)
            child = node[key]
            if id(child) not in self._owned:
                child = node[key] = self._own(_copy_level(child))
            node = child
        node[_token_key(node, path[-1])] = value

    def record(self, path: Sequence[Token], value: Any) -> None:
        """Record a change that the caller makes to an object of its own."""
        self.operations.append(PatchOperation("add", pointer(path), value))

    def _open(self, path: Sequence[Token]) -> Any:
        """Walk to the container at ``path``, copying every container on the path once."""
        node: Any = self.object
        for depth, token in enumerate(path):
            child = node.get(token) if isinstance(node, dict) else node[token]
            if child is None:
                child = self._own({})
                # Another map: later changes must not show up inside this operation's value.
                self._write_down(node, path[: depth + 1], {})
            elif id(child) not in self._owned:
                child = self._own(_copy_level(child))
            node[token] = child
            node = child
        return node

    def _write_down(self, parent: Any, path: Sequence[Token], value: Any) -> None:
        op = "replace" if isinstance(parent, list) else "add"
        self.operations.append(PatchOperation(op, pointer(path), value))

    def _own(self, copied: Any) -> Any:
        self._owned[id(copied)] = copied
        return copied


def _token_key(node: Any, token: str) -> Token:
    return int(token) if isinstance(node, list) else token


def _copy_level(node: Any) -> Any:
    """Copy one level of a map or list."""
    if isinstance(node, (dict, list)):
        return node.copy()
    raise TypeError(f"a {type(node).__name__} has no members")
