"""ChangeContents: what a change does in words, equal words of many namespaces in one line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from policies.manifests import diff_in_words
from portal.pages.changes.sets.diff import text_differences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from policies.models import ChangeItem

LINES_SHOWN: Final = 30
PLACES_SHOWN: Final = 8
PHRASES_SHOWN: Final = 5
_AMOUNTS: Final = re.compile(r"(?P<words>.+) from (?P<old>\S+) to (?P<new>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPhrase:
    """One difference; ``old`` and ``new`` are amounts that are shown beside each other."""

    words: str
    old: str = ""
    new: str = ""


@dataclass(slots=True)
class ContentLine:
    """Objects of one kind and name to which the same happens, and their places."""

    item: ChangeItem
    all_phrases: Sequence[ContentPhrase]
    all_places: list[tuple[str, str]]
    is_new: bool = False
    """Whether the reader has not seen it so, in one of the places at least."""

    @property
    def phrases(self) -> Sequence[ContentPhrase]:
        """The first of what happens; Diff has all."""
        return self.all_phrases[:PHRASES_SHOWN]

    @property
    def further_phrases(self) -> int:
        """How many differences are not shown."""
        return max(0, len(self.all_phrases) - PHRASES_SHOWN)

    @property
    def places(self) -> Sequence[tuple[str, str]]:
        """The first of the places: cluster and namespace."""
        return self.all_places[:PLACES_SHOWN]

    @property
    def further(self) -> int:
        """How many places are not shown."""
        return max(0, len(self.all_places) - PLACES_SHOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeContents:
    """The lines of a change; ``added`` and ``removed`` count lines of YAML, None of too many."""

    lines: Sequence[ContentLine]
    number: int
    clusters: Sequence[str]
    lines_left_out: int
    added: int | None
    removed: int | None


def contents_of(items: Iterable[ChangeItem], *, new: Collection[int] = ()) -> ChangeContents:
    """Put what a change does in words; whatever is done most often comes first.

    ``new`` are the keys of objects that the reader has not seen as they are.
    """
    found: dict[tuple[str, ...], ContentLine] = {}
    clusters: dict[str, None] = {}
    number = 0
    for item in items:
        number += 1
        clusters[item.cluster] = None
        words = tuple(diff_in_words.changes(item.base, item.content))
        line = found.get((item.kind, item.name, item.action, *words))
        if line is None:
            line = ContentLine(item, [_phrase(each) for each in words], [])
            found[(item.kind, item.name, item.action, *words)] = line
        line.all_places.append((item.cluster, item.namespace))
        line.is_new |= item.pk in new
    lines = sorted(found.values(), key=lambda each: -len(each.all_places))
    added, removed = _counted(lines)
    return ChangeContents(
        lines=lines[:LINES_SHOWN],
        number=number,
        clusters=list(clusters),
        lines_left_out=max(0, len(lines) - LINES_SHOWN),
        added=added,
        removed=removed,
    )


def _counted(lines: Sequence[ContentLine]) -> tuple[int | None, int | None]:
    """Lines of YAML that are added and removed; of equal changes one is compared."""
    if len(lines) > LINES_SHOWN:
        return None, None
    added = removed = 0
    for line in lines:
        differences = text_differences(line.item)
        added += differences.added * len(line.all_places)
        removed += differences.removed * len(line.all_places)
    return added, removed


def _phrase(text: str) -> ContentPhrase:
    found = _AMOUNTS.fullmatch(text)
    return ContentPhrase(**found.groupdict()) if found else ContentPhrase(words=text)
