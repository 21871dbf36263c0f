"""Most violations, longest message, longest review: ``Collected``, ``bounded``, ``shortened``, cut.

The number of violations grows with the object times the policies; a person reads a few.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from engine.names import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.decision import Reason, Violation

MOST_VIOLATIONS: Final = 50
"""The most violations that a decision lists; it counts the others."""
LONGEST_MESSAGE: Final = 16 * 1024
"""Bytes of a message, and of all causes together; longer ones are cut."""
LONGEST_REVIEW: Final = 4
"""The most seconds that one review may take."""
AND_MORE: Final = "and more"
_SEPARATOR: Final = ", "


class TooLongError(Exception):
    """The request used up its time; its ``pause`` raises this."""


class Collected:
    """Violations in the order in which they are found, as many as an answer can show.

    It keeps the first ``MOST_VIOLATIONS``, and further ones while their text is new and the texts
    fit into ``LONGEST_MESSAGE``. It only counts the rest, by reason.
    """

    __slots__ = ("_room_left", "_texts", "kept", "more")

    def __init__(self) -> None:
        self.kept: list[Violation] = []
        self.more: dict[Reason, int] = {}
        self._texts: set[str] = set()
        self._room_left = LONGEST_MESSAGE

    @property
    def lists_all(self) -> bool:
        """Whether the list still has room, so that any violation is kept."""
        return len(self.kept) < MOST_VIOLATIONS

    @property
    def is_full(self) -> bool:
        """Whether neither list nor message has room: further violations are only counted."""
        return self._room_left <= 0 and not self.lists_all

    def wants(self, text: str) -> bool:
        """Whether to keep the next violation, which has this text."""
        return self.lists_all or (self._room_left > 0 and text not in self._texts)

    def keep(self, violation: Violation, text: str) -> None:
        """Keep a violation for which ``wants`` is true."""
        self.kept.append(violation)
        # The message shows each text once, so that only new ones take room.
        if text not in self._texts:
            self._texts.add(text)
            self._room_left -= size_of(text) + len(_SEPARATOR)

    def count(self, reason: Reason, number: int = 1) -> None:
        """Count violations that are not kept."""
        if number > 0:
            self.more[reason] = self.more.get(reason, 0) + number


def bounded(texts: Iterable[str], most: int = LONGEST_MESSAGE, *, is_cut: bool = False) -> str:
    """Join texts as Kubernetes aggregates errors: each once, in brackets where there are several.

    A result above ``most`` bytes is cut after a whole text and ends with ``AND_MORE``, as does one
    of which ``is_cut`` says that the caller has left texts out.
    """
    distinct = list(dict.fromkeys(texts))
    if not is_cut:
        whole = distinct[0] if len(distinct) == 1 else f"[{_SEPARATOR.join(distinct)}]"
        if size_of(whole) <= most:
            return whole
    room, shown_texts = most, []
    for text in distinct:
        room -= size_of(text) + len(_SEPARATOR)
        if room < 0:
            break
        shown_texts.append(text)
    return f"[{_SEPARATOR.join([*(shown_texts or [shortened(distinct[0], most)]), AND_MORE])}]"


def shortened(text: str, most: int) -> str:
    """Cut a text to ``most`` bytes, an ellipsis included."""
    # A character takes at most four bytes: most texts are known to fit without encoding them.
    if len(text) * 4 <= most or size_of(text) <= most:
        return text
    # The cut may split a character, whose remains the decoder ignores.
    kept_bytes = text.encode("utf-8", "surrogatepass")[: max(most - 3, 0)]
    return f"{kept_bytes.decode('utf-8', 'ignore')}…"


def added(first: Mapping[Reason, int], *others: Mapping[Reason, int]) -> Mapping[Reason, int]:
    """Add up counts by reason."""
    filled_counts = [counts for counts in (first, *others) if counts]
    if len(filled_counts) < 2:  # noqa: PLR2004 - nearly always there is one
        return filled_counts[0] if filled_counts else first
    summed: Counter[Reason] = Counter()
    for counts in filled_counts:
        summed.update(counts)
    return summed


def cut_list(
    violations: Sequence[Violation], more: Mapping[Reason, int]
) -> tuple[tuple[Violation, ...], Mapping[Reason, int]]:
    """Return the first violations, and by reason the number of the others."""
    if len(violations) <= MOST_VIOLATIONS:
        return tuple(violations), more
    unlisted = Counter([violation.reason for violation in violations[MOST_VIOLATIONS:]])
    return tuple(violations[:MOST_VIOLATIONS]), added(unlisted, more)
