"""Facts: what is worked out once about a frozen value, and kept with it. No rule lives here.

A value's fields never change, so neither does what follows from them. Facts are no part of the
value: they are neither compared nor shown, and a changed copy starts without any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Value = TypeVar("_Value", bound="Remembering")
_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class Remembering:
    """A value that facts can be kept with; any thread may add to them."""

    _facts: dict[object, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )


def once(work: Callable[[_Value], _Fact]) -> Callable[[_Value], _Fact]:
    """Make a function of one value answer from the second time on what it answered the first.

    Nobody may change the answer. What is raised is raised again each time.
    """

    @wraps(work)
    def remembered(value: _Value) -> _Fact:
        facts = value._facts  # noqa: SLF001 - this module's own
        try:
            found: _Fact = facts[work]
        except KeyError:
            found = facts[work] = work(value)
        return found

    return remembered
