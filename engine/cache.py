"""Caches bounded in entries and bytes, and facts computed once for a frozen value.

Whoever sends objects decides how large their answers are, so that to count them bounds nothing.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_Key = TypeVar("_Key", bound="Hashable")
_Answer = TypeVar("_Answer")
_SHARE = 16
"""An answer that takes more than this part of the room is not kept at all."""


class Kept(Generic[_Key, _Answer]):
    """A function of one key that answers from the second time on what it answered the first.

    ``most`` answers of ``room`` bytes are kept, as ``weigh`` estimates them, half of them for sure
    while they are asked for: when one half is full, what was not asked for since the other was
    begun is forgotten. Answers are never None. What is raised is raised again each time. Any
    thread may call it: two that come at once may count one answer for both, which is made good
    when the half is full.
    """

    __slots__ = (
        "_largest",
        "_most",
        "_older",
        "_room",
        "_taken",
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
        """Forget all of them."""
        self._young: dict[_Key, _Answer] = {}
        self._older: dict[_Key, _Answer] = {}
        self._taken = 0

    @property
    def taken(self) -> int:
        """The bytes of the newer half, as they were estimated."""
        return self._taken

    def __len__(self) -> int:
        return len(self._young) + len(self._older)

    def __call__(self, key: _Key) -> _Answer:
        """Answer, out of what is kept where that is possible."""
        found = self._young.get(key)
        if found is not None:
            return found
        found = self._older.get(key)
        if found is None:
            found = self._work(key)
        weight = self._weigh(key, found)
        if weight <= self._largest:
            if len(self._young) >= self._most or self._taken + weight > self._room:
                self._older, self._young, self._taken = self._young, {}, 0
            self._young[key] = found
            self._taken += weight
        return found


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
            found = work(value)
            facts: dict[object, Any] | None = getattr(value, "_facts", None)
            if facts is None:
                # No lock: of two threads that get here at once, one loses its first fact and
                # computes it again. Frozen values take no plain assignment.
                facts = {}
                object.__setattr__(value, "_facts", facts)
            facts[work] = found
        return found

    return remembered
