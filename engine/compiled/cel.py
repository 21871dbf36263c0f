"""CEL as text: string literals, absent keys, selectors over a map, joined texts of a message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.selector.requirement import OPERATORS, SelectorOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.selector import LabelSelector
    from engine.selector.label_selector import LabelSelectorRequirement

MOST_TEXTS: Final = 10
"""The texts of one message; the API server replaces a message above 5 KiB by a fixed one."""
_READ_TEXTS: Final = 100
_ESCAPED: Final = {'"': '\\"', "\\": "\\\\"}
_PLAIN: Final = re.compile(r"[\w./ -]*", re.ASCII)
_ASCII: Final = range(0x20, 0x7F)
_PLANE: Final = 0x10000


def literal(text: str) -> str:
    """Render a string literal, in ASCII."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join([_ESCAPED.get(sign) or _spelled(sign) for sign in text]) + '"'


def is_sayable(text: str) -> bool:
    """Whether CEL has a literal for the text: it has none for lone surrogates."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def listed(terms: Iterable[str]) -> str:
    """Render a list of expressions."""
    return f"[{', '.join(terms)}]"


def conjunction(terms: Iterable[str]) -> str:
    """Combine expressions that all must hold; none at all always holds."""
    return " && ".join(terms) or "true"


def matches(selector: LabelSelector, labels: str) -> str:
    """Whether the map that the expression ``labels`` gives satisfies a selector."""
    terms = [
        f"{literal(key)} in {labels} && {labels}[{literal(key)}] == {literal(value)}"
        for key, value in sorted(selector.match_labels.items())
    ]
    terms += [_satisfies(entry, labels) for entry in selector.match_expressions]
    return conjunction(terms)


def texts_of(selector: LabelSelector) -> Iterator[str]:
    """All keys and values of a selector."""
    for key, value in selector.match_labels.items():
        yield from (key, value)
    for entry in selector.match_expressions:
        yield from (entry.key, *entry.values)


def keys_of(selector: LabelSelector) -> frozenset[str]:
    """The keys on which a selector depends."""
    return frozenset([*selector.match_labels, *[e.key for e in selector.match_expressions]])


def joined(texts: str) -> str:
    """Join a list of texts as Kubernetes aggregates errors: each once, several in brackets."""
    # The cost of ``distinct`` grows with the square of the list.
    some = f"[{texts}].map(t, t.size() > {_READ_TEXTS} ? t.slice(0, {_READ_TEXTS}) : t)"
    most = f"t.size() > {MOST_TEXTS} ? t.slice(0, {MOST_TEXTS}) + ['and more'] : t"
    one_or_all = "t.size() == 1 ? t[0] : '[' + t.join(', ') + ']'"
    return f"{some}.map(t, t.distinct()).map(t, {most}).map(t, {one_or_all})[0]"


def _spelled(sign: str) -> str:
    code = ord(sign)
    if code in _ASCII:
        return sign
    return f"\\u{code:04x}" if code < _PLANE else f"\\U{code:08x}"


def _satisfies(entry: LabelSelectorRequirement, labels: str) -> str:
    operator = OPERATORS.get(entry.operator)
    is_present = f"{literal(entry.key)} in {labels}"
    if operator is None:
        return "false"  # an unknown operator matches nothing
    if operator is SelectorOperator.EXISTS:
        return is_present
    if operator is SelectorOperator.DOES_NOT_EXIST:
        return f"!({is_present})"
    values = listed(map(literal, entry.values))
    is_listed = f"{is_present} && {labels}[{literal(entry.key)}] in {values}"
    return is_listed if operator is SelectorOperator.IN else f"!({is_listed})"
