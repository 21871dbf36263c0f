"""TextLines of two texts: in one column or beside each other, values that differ marked."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Final

from portal.pages.policies.panes.yaml_lines import pieces_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from portal.pages.policies.panes.yaml_lines import Piece

WHOLE: Final = 200
"""Lines of the longest text that is shown as a whole; of longer ones, what is near a change."""
_AROUND: Final = 3
ADDED: Final = "+"
REMOVED: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """A line of either text, or of both: then ``sign`` is empty."""

    sign: str = ""
    old: int | None = None
    new: int | None = None
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The lines, and how many were added and removed."""

    lines: tuple[TextLine, ...] = ()

    @property
    def added(self) -> int:
        """Lines that only the new text has."""
        return sum(line.sign == ADDED for line in self.lines)

    @property
    def removed(self) -> int:
        """Lines that only the old text had."""
        return sum(line.sign == REMOVED for line in self.lines)

    @property
    def sides(self) -> Sequence[tuple[TextLine | None, TextLine | None]]:
        """The lines of both texts beside each other; None where only the other text has one."""
        sides: list[tuple[TextLine | None, TextLine | None]] = []
        for is_same, lines in groupby(self.lines, key=lambda line: not line.sign):
            group = list(lines)
            if is_same:
                sides += [(line, line) for line in group]
                continue
            old = [line for line in group if line.sign == REMOVED]
            new = [line for line in group if line.sign == ADDED]
            sides += zip_longest(old, new)
        return sides


def differences_of(before: str, after: str) -> Differences:
    """Compare two texts line by line; none for equal ones."""
    if before.strip() == after.strip():
        return Differences()
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    longest = max(len(old), len(new))
    around = longest if longest <= WHOLE else _AROUND
    lines: list[TextLine] = []
    for group in matcher.get_grouped_opcodes(around):
        for tag, old_at, old_end, new_at, new_end in group:
            if tag == "equal":
                lines += _same(old[old_at:old_end], old_at, new_at)
            else:
                lines += _changed(old[old_at:old_end], new[new_at:new_end], old_at, new_at)
    return Differences(lines=tuple(lines))


def _same(texts: Sequence[str], old_at: int, new_at: int) -> Iterator[TextLine]:
    for number, text in enumerate(texts, 1):
        yield TextLine(old=old_at + number, new=new_at + number, pieces=pieces_of(text))


def _changed(
    old: Sequence[str], new: Sequence[str], old_at: int, new_at: int
) -> Iterator[TextLine]:
    """Lines that took the place of others: pairs of one key stand together, their values marked."""
    if len(old) != len(new):
        for number, text in enumerate(old, 1):
            yield TextLine(sign=REMOVED, old=old_at + number, pieces=pieces_of(text))
        for number, text in enumerate(new, 1):
            yield TextLine(sign=ADDED, new=new_at + number, pieces=pieces_of(text))
        return
    for number, (was, now) in enumerate(zip(old, new, strict=True), 1):
        is_pair = was.partition(":")[0] == now.partition(":")[0]
        yield TextLine(sign=REMOVED, old=old_at + number, pieces=pieces_of(was, is_marked=is_pair))
        yield TextLine(sign=ADDED, new=new_at + number, pieces=pieces_of(now, is_marked=is_pair))
