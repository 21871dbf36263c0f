"""Bounds of a decision: how many violations are listed, and how long texts may be.

What one object can break grows with the object times the policies; what anybody reads does not.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from engine.names import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.decision import Reason, Violation

MOST_VIOLATIONS: Final = 50
"""So many violations a decision lists; of the others it has the number."""
LONGEST_MESSAGE: Final = 16 * 1024
"""Bytes of a message, and of the causes together, that are given whole."""
LONGEST_REVIEW: Final = 4
"""Seconds that judging one review may take."""
AND_MORE: Final = "and more"
_SEPARATOR: Final = ", "


class TooLongError(Exception):
    """Judging a request took the time that one may take; raised by its ``pause``."""


class Collected:
    """Violations in the order in which they are found, as many as an answer can show.

    Kept are the first ``MOST_VIOLATIONS``, and of the others those whose text is new, up to
    ``LONGEST_MESSAGE``: all that the list and the message of a decision are made of. The rest is
    only counted, by its reason.
    """

    __slots__ = ("_room", "_texts", "kept", "more")

    def __init__(self) -> None:
        self.kept: list[Violation] = []
        self.more: dict[Reason, int] = {}
        self._texts: set[str] = set()
        self._room = LONGEST_MESSAGE

    @property
    def lists_all(self) -> bool:
        """Whether there is room for whatever comes next."""
        return len(self.kept) < MOST_VIOLATIONS

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be kept: what comes is to be counted alone."""
        return self._room <= 0 and not self.lists_all

    def wants(self, text: str) -> bool:
        """Whether a violation of this text, the next in order, is to be kept."""
        return self.lists_all or (self._room > 0 and text not in self._texts)

    def keep(self, violation: Violation, text: str) -> None:
        """Keep one that is wanted."""
        self.kept.append(violation)
        if text not in self._texts:
            self._texts.add(text)
            self._room -= size_of(text) + len(_SEPARATOR)

    def count(self, reason: Reason, number: int = 1) -> None:
        """Count what is not kept."""
        if number > 0:
            self.more[reason] = self.more.get(reason, 0) + number


def bounded(texts: Iterable[str], most: int = LONGEST_MESSAGE, *, is_cut: bool = False) -> str:
    """Join texts as Kubernetes aggregates errors: each once, in brackets where there are several.

    What is longer than ``most`` bytes ends after a whole text, with ``AND_MORE``; so it does where
    ``is_cut`` says that there are others.
    """
    unique = list(dict.fromkeys(texts))
    if not is_cut:
        whole = unique[0] if len(unique) == 1 else f"[{_SEPARATOR.join(unique)}]"
        if size_of(whole) <= most:
            return whole
    room, shown = most, []
    for text in unique:
        room -= size_of(text) + len(_SEPARATOR)
        if room < 0:
            break
        shown.append(text)
    return f"[{_SEPARATOR.join([*(shown or [shortened(unique[0], most)]), AND_MORE])}]"


def shortened(text: str, most: int) -> str:
    """A text of at most so many bytes, and a sign for what is cut off."""
    if len(text) * 4 <= most or size_of(text) <= most:
        return text
    cut = text.encode("utf-8", "surrogatepass")[: max(most - 3, 0)]
    return f"{cut.decode('utf-8', 'ignore')}…"


def added(first: Mapping[Reason, int], *others: Mapping[Reason, int]) -> Mapping[Reason, int]:
    """Add up counts by reason."""
    filled = [each for each in (first, *others) if each]
    if len(filled) < 2:  # noqa: PLR2004 - one alone, as nearly always
        return filled[0] if filled else first
    total: Counter[Reason] = Counter()
    for each in filled:
        total.update(each)
    return total


def cut_list(
    found: Sequence[Violation], more: Mapping[Reason, int]
) -> tuple[tuple[Violation, ...], Mapping[Reason, int]]:
    """Give the first violations, and by their reasons how many others there are."""
    if len(found) <= MOST_VIOLATIONS:
        return tuple(found), more
    rest = Counter([each.reason for each in found[MOST_VIOLATIONS:]])
    return tuple(found[:MOST_VIOLATIONS]), added(rest, more)
