"""``Kept``: memoized answers in two generations, young and older, by weight; ``once``: kept facts.

Clients decide how large their objects are, so that a bound on entries alone bounds no memory.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_Key = TypeVar("_Key", bound="Hashable")
_Answer = TypeVar("_Answer")
_SHARE = 16
"""The largest answer that is kept is this fraction of the room."""


class Kept(Generic[_Key, _Answer]):
    """A memoized function of one key, bounded to ``most`` answers and ``room`` bytes.

    ``weigh`` estimates the bytes of an answer. There are two generations: a hit in the older one
    copies the answer to the younger; when the younger is full it becomes the older, and answers
    that nobody used since are dropped. Answers are never None. Exceptions are not kept. It is safe
    for threads: two that add at once may miscount the bytes, until the next generation begins.
    """

    __slots__ = (
        "_largest",
        "_most",
        "_older",
        "_room",
        "_taken_bytes",
        "_weigh",
        "_work",
        "_young",
    )

    def __init__(
        self,
        work: Callable[[_Key], _Answer],
        weigh: Callable[[_Key, _Answer], int],
        *,
        most: int,
        room: int,
    ) -> None:
        self._work, self._weigh = work, weigh
        self._most, self._room, self._largest = most // 2, room // 2, room // _SHARE
        self.cache_clear()

    def cache_clear(self) -> None:
        """Drop all answers."""
        self._young: dict[_Key, _Answer] = {}
        self._older: dict[_Key, _Answer] = {}
        self._taken_bytes = 0

    @property
    def taken(self) -> int:
        """The estimated bytes of the younger generation."""
        return self._taken_bytes

    def __len__(self) -> int:
        return len(self._young) + len(self._older)

    def __call__(self, key: _Key) -> _Answer:
        """Return the kept answer, or compute it."""
        answer = self._young.get(key)
        if answer is not None:
            return answer
        answer = self._older.get(key)
        if answer is None:
            answer = self._work(key)
        weight = self._weigh(key, answer)
        if weight <= self._largest:
            # No lock: threads that swap at once lose answers, which costs time and no correctness.
            if len(self._young) >= self._most or self._taken_bytes + weight > self._room:
                self._older, self._young, self._taken_bytes = self._young, {}, 0
            self._young[key] = answer
            self._taken_bytes += weight
        return answer


_Value = TypeVar("_Value", bound="Remembering")
_Fact = TypeVar("_Fact")


class Remembering:
    """A base for frozen values that keep facts; the slot stays unset until the first one."""

    __slots__ = ("_facts",)
    _facts: dict[object, Any]


def once(work: Callable[[_Value], _Fact]) -> Callable[[_Value], _Fact]:
    """Memoize a function of one value in the value itself, so that both are dropped together.

    Callers must not change the answer. Exceptions are not kept.
    """

    @wraps(work)
    def remembered(frozen: _Value) -> _Fact:
        try:
            fact: _Fact = frozen._facts[work]  # noqa: SLF001 - this module's own
        except (AttributeError, KeyError):
            fact = work(frozen)
            facts: dict[object, Any] | None = getattr(frozen, "_facts", None)
            if facts is None:
                # No lock: of two threads that get here at once, one loses its first fact and
                # computes it again. Frozen values take no plain assignment.
                facts = {}
                object.__setattr__(frozen, "_facts", facts)
            facts[work] = fact
        return fact

    return remembered
