"""The string form of a selector, as query strings write it: ``a=b,c in (d,e),!f``.

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
    """All requirements together, in key order; none of them means everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> Selector:
        """A selector with its requirements in key order."""
        return cls(tuple(sorted(requirements, key=lambda requirement: requirement.key)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def parse_selector(text: str) -> Selector:
    """Read the string form; raises ``SelectorError`` with Kubernetes' text."""
    return _Parser(_TOKENS.findall(text)).parse()


class _Parser:
    """Reads tokens from left to right, one requirement after another."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _take(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def parse(self) -> Selector:
        found: list[Requirement] = []
        if self._peek() == _END:
            return Selector()
        if not _starts_requirement(self._peek()):
            raise SelectorError(
                f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
            )
        while True:
            found.append(self._named_requirement())
            word = self._take()
            if word == _END:
                return Selector.of(found)
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if not _starts_requirement(self._peek()):
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _named_requirement(self) -> Requirement:
        try:
            return self._requirement()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._take()
        key = self._identifier()
        if errors := key_errors(key):
            raise SelectorError(bracketed(str(error) for error in errors))
        if absent:
            return build_requirement(key, SelectorOperator.DOES_NOT_EXIST, ())
        if self._peek() in (_END, ","):
            return build_requirement(key, SelectorOperator.EXISTS, ())
        operator = self._operator()
        listed = operator in (SelectorOperator.IN, SelectorOperator.NOT_IN)
        return build_requirement(key, operator, self._values() if listed else self._value())

    def _identifier(self) -> str:
        word = self._take()
        if word == _END or word in _SYMBOLS:
            raise SelectorError(f"found '{word}', expected: identifier")
        return word

    def _operator(self) -> SelectorOperator:
        word = self._take()
        if word not in _OPERATORS:
            expected = ", ".join(operator.value for operator in _OPERATORS.values())
            raise SelectorError(f"found '{word}', expected: {expected}")
        return _OPERATORS[word]

    def _value(self) -> list[str]:
        return [""] if self._peek() in (_END, ",") else [self._identifier()]

    def _values(self) -> list[str]:
        """A list in parentheses, where an entry left out is the empty value."""
        if (word := self._take()) != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        values = {self._entry()}
        while (word := self._take()) == ",":
            values.add(self._entry())
        if word != ")":
            raise SelectorError(f"found '{word}', expected: ',' or ')'")
        return sorted(values)

    def _entry(self) -> str:
        return "" if self._peek() in (",", ")") else self._identifier()


def _starts_requirement(word: str) -> bool:
    return word == "!" or (word != _END and word not in _SYMBOLS)
