"""``Selector`` and the _Parser of its string form, word by word: ``a=b,c in (d,e),!f``.

Source: ``k8s.io/apimachinery/pkg/labels/selector.go`` (the accepted language and its texts).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import bracketed
from engine.selector.requirement import (
    Requirement,
    SelectorError,
    SelectorOperator,
    build_requirement,
    key_errors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TOKENS = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END = ""
_OPERATORS = {
    "in": SelectorOperator.IN,
    "notin": SelectorOperator.NOT_IN,
    "=": SelectorOperator.EQUALS,
    "==": SelectorOperator.DOUBLE_EQUALS,
    "!=": SelectorOperator.NOT_EQUALS,
    ">": SelectorOperator.GREATER_THAN,
    "<": SelectorOperator.LESS_THAN,
}


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements in key order; without any it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> Selector:
        """Build a selector, its requirements sorted by key."""
        return cls(tuple(sorted(requirements, key=lambda requirement: requirement.key)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def parse_selector(text: str) -> Selector:
    """Parse the string form; raises ``SelectorError`` with Kubernetes' text."""
    return _Parser(_TOKENS.findall(text)).selector()


class _Parser:
    """Reads tokens from left to right, one requirement after another."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str:
        """Look at the next token, empty at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else _END

    def take(self) -> str:
        """Go past the next token."""
        word = self.peek()
        self.position += 1
        return word

    def selector(self) -> Selector:
        """Read all requirements, separated by commas."""
        requirements: list[Requirement] = []
        if self.peek() == _END:
            return Selector()
        if not _starts_requirement(self.peek()):
            raise SelectorError(
                f"found '{self.peek()}', expected: !, identifier, or 'end of string'"
            )
        while True:
            try:
                requirements.append(self.requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            word = self.take()
            if word == _END:
                return Selector.of(requirements)
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if not _starts_requirement(self.peek()):
                raise SelectorError(f"found '{self.peek()}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        """Read one requirement: a key, mostly an operator, and values."""
        is_absent = self.peek() == "!"
        if is_absent:
            self.take()
        key = self.identifier()
        if errors := key_errors(key):
            raise SelectorError(bracketed(str(error) for error in errors))
        if is_absent:
            return build_requirement(key, SelectorOperator.DOES_NOT_EXIST, ())
        if self.peek() in (_END, ","):
            return build_requirement(key, SelectorOperator.EXISTS, ())
        word = self.take()
        if word not in _OPERATORS:
            expected = ", ".join(operator.value for operator in _OPERATORS.values())
            raise SelectorError(f"found '{word}', expected: {expected}")
        operator = _OPERATORS[word]
        if operator in (SelectorOperator.IN, SelectorOperator.NOT_IN):
            return build_requirement(key, operator, self.values())
        value = "" if self.peek() in (_END, ",") else self.identifier()
        return build_requirement(key, operator, [value])

    def identifier(self) -> str:
        """Read a key or value."""
        word = self.take()
        if word == _END or word in _SYMBOLS:
            raise SelectorError(f"found '{word}', expected: identifier")
        return word

    def values(self) -> list[str]:
        """Read a list in parentheses, where an entry left out is the empty value."""
        if (word := self.take()) != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        listed = set()
        while True:
            listed.add("" if self.peek() in (",", ")") else self.identifier())
            if (word := self.take()) != ",":
                break
        if word != ")":
            raise SelectorError(f"found '{word}', expected: ',' or ')'")
        return sorted(listed)


def _starts_requirement(word: str) -> bool:
    return word == "!" or (word != _END and word not in _SYMBOLS)
