"""BoardHeads: the columns that sort the board of quotas, and the lines in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from portal.pages.shell.quota_trends import trends

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.http import QueryDict

    from portal.pages.shell.quota_lines import QuotaLine

FULLEST: Final = "fullest"
DAYS: Final = "days"
_NEVER: Final = 10**6
"""More days than any forecast."""
_BY_TEXT: Final[dict[str, Callable[[QuotaLine], tuple[str, ...]]]] = {
    "name": lambda line: line.place[1:],
    "cluster": lambda line: line.place,
    "classes": lambda line: (line.class_words,),
    "resource": lambda line: (line.level.resource,),
}
_LABELS: Final = {
    "name": ("Quota", "col-name"),
    "cluster": ("Cluster", "col-cluster"),
    "classes": ("Classes", "col-classes"),
    FULLEST: ("Fullest resource", "col-bar"),
    "resource": ("Resource", "col-resource"),
    "amounts": ("Used / limit", "col-amounts"),
    "trend": ("14 days", "col-trend"),
    DAYS: ("Days to full", "col-days"),
}


@dataclass(frozen=True, slots=True)
class BoardHead:
    """The head of a column: ``query`` sorts by it, ``order`` is a value of ``aria-sort``."""

    label: str
    look: str
    query: str
    order: str


@dataclass(frozen=True, slots=True)
class BoardOrder:
    """What the board is sorted by, and whether that is turned round."""

    column: str
    is_turned: bool

    @classmethod
    def of(cls, text: str) -> BoardOrder:
        """Read it from an address; by how full they are for what is unknown."""
        column = text.removeprefix("-")
        known = column in {*_BY_TEXT, FULLEST, DAYS}
        return cls(column, text.startswith("-")) if known else cls(FULLEST, is_turned=False)

    def sort(self, lines: Sequence[QuotaLine]) -> list[QuotaLine]:
        """The lines, which are fullest first, in this order; one query for days."""
        found = list(lines)
        if self.column == DAYS:
            days = {
                line.key: _NEVER if trend.days is None else trend.days
                for line, trend in zip(found, trends(found), strict=True)
            }
            found.sort(key=lambda line: days[line.key])
        elif self.column in _BY_TEXT:
            found.sort(key=_BY_TEXT[self.column])
        return found[::-1] if self.is_turned else found

    def heads(self, query: QueryDict, *, shows_cluster: bool, resource: str) -> list[BoardHead]:
        """The heads of all columns; a press on the one that sorts turns the order round."""
        heads = []
        for column, (label, look) in _LABELS.items():
            if column == "cluster" and not shows_cluster:
                continue
            shown = resource if resource and column == FULLEST else label
            heads.append(BoardHead(shown, look, self._query(query, column), self._order(column)))
        return heads

    def _order(self, column: str) -> str:
        if column != self.column:
            return ""
        # The fullest come first, while names and days begin with the smallest.
        return "descending" if (column == FULLEST) != self.is_turned else "ascending"

    def _query(self, query: QueryDict, column: str) -> str:
        if column not in {*_BY_TEXT, FULLEST, DAYS}:
            return ""
        asked = query.copy()
        asked.pop("page", None)
        is_same = column == self.column
        asked["sort"] = f"-{column}" if is_same and not self.is_turned else column
        return asked.urlencode()
