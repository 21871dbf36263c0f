"""PagedRows: rows by denials and others behind them, by groups or not, of which a page is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from portal.pages.policies.selection import PolicyRow


class PagedRows(Sequence["PolicyRow"]):
    """Rows that are read already, and those of a query between them; a page alone is read."""

    def __init__(self, places: Sequence[PolicyRow | None], others: Any) -> None:
        self._places, self._others = places, others

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> PolicyRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[PolicyRow]: ...
    def __getitem__(self, place: int | slice) -> PolicyRow | list[PolicyRow]:
        if isinstance(place, int):
            return self[place : place + 1][0]
        begin, end, _ = place.indices(len(self))
        shown, before = self._places[begin:end], self._places[:begin].count(None)
        number = shown.count(None)
        others = iter(self._others[before : before + number] if number else ())
        # A policy that was deleted since they were counted leaves its place empty.
        rows = (row or next(others, None) for row in shown)
        return [row for row in rows if row]


def placed(
    first: Iterable[PolicyRow], total: int, *, column: str = "", sizes: Mapping[str, int] | None
) -> list[PolicyRow | None]:
    """The known rows in their places, those of each group first; None for rows of the query.

    ``sizes`` are the groups in the order of the query, by the value of ``column``.
    """
    if not sizes:
        known: list[PolicyRow | None] = [*first]
        return known + [None] * (total - len(known))
    by_group: dict[str, list[PolicyRow]] = defaultdict(list)
    for row in first:
        by_group[row[column]].append(row)
    places: list[PolicyRow | None] = []
    for group, number in sizes.items():
        places += by_group[group]
        places += [None] * (number - len(by_group[group]))
    return places
