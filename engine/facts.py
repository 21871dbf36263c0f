"""Facts: what is worked out once about a frozen value, and kept with it. No rule lives here.

A value's fields never change, so neither does what follows from them. Facts are no part of the
value: they are neither compared nor shown, and a changed copy starts without any.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Value = TypeVar("_Value", bound="Remembering")
_Fact = TypeVar("_Fact")


class Remembering:
    """A value that facts can be kept with; any thread may add to them. Most never have any."""

    __slots__ = ("_facts",)
    _facts: dict[object, Any]


def once(work: Callable[[_Value], _Fact]) -> Callable[[_Value], _Fact]:
    """Make a function of one value answer from the second time on what it answered the first.

    Nobody may change the answer. What is raised is raised again each time.
    """

    @wraps(work)
    def remembered(value: _Value) -> _Fact:
        try:
            found: _Fact = value._facts[work]  # noqa: SLF001 - this module's own
        except (AttributeError, KeyError):
            found = _facts_of(value)[work] = work(value)
        return found

    return remembered


def _facts_of(value: Remembering) -> dict[object, Any]:
    """Where its facts are kept. Of two threads that begin at once one keeps its first in vain."""
    facts: dict[object, Any] | None = getattr(value, "_facts", None)
    if facts is None:
        facts = {}
        object.__setattr__(value, "_facts", facts)
    return facts
