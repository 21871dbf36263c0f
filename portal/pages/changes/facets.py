"""Facets of History: the changes by kind, person, cluster and namespace, of the newest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from portal.pages.policies.choices import FilterChoice, ListFacet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FACETS: Final = ("kind", "user", "cluster", "namespace")
_TITLES: Final = {"kind": "Kind", "user": "Who", "cluster": "Cluster", "namespace": "Namespace"}
_SHOWN: Final = 6
_MOST_CHOICES: Final = 60


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """Numbers of changes by field and value; each figure ignores the choice of its own field."""

    by_field: Mapping[str, Counter[str]]
    total: int
    is_cut: bool

    @classmethod
    def of(
        cls, changes: Sequence[tuple[str, ...]], asked: Mapping[str, str], *, most: int
    ) -> ChangeCounts:
        """Count the fields of ``FACETS`` of changes; of more than ``most`` the first."""
        by_field: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
        total = 0
        for values, number in Counter(changes[:most]).items():
            missed = [
                name
                for name, value in zip(FACETS, values, strict=True)
                if asked[name] not in ("", value)
            ]
            total += 0 if missed else number
            for name, value in zip(FACETS, values, strict=True):
                if missed in ([], [name]):
                    by_field[name][value] += number
        return cls(by_field, total, len(changes) > most)


def change_facets(asked: Mapping[str, str], counts: ChangeCounts) -> list[ListFacet]:
    """The fields beside the list; none without a choice."""
    facets = []
    for name in FACETS:
        numbers = [(value, number) for value, number in counts.by_field[name].items() if value]
        numbers.sort(key=lambda each: (each[0] != asked[name], -each[1], each[0]))
        choices = [_choice(asked, name, value, number) for value, number in numbers]
        if choices:
            more = choices[_SHOWN:_MOST_CHOICES]
            facets.append(ListFacet(name, _TITLES[name], choices[:_SHOWN], more))
    return facets


def _choice(asked: Mapping[str, str], name: str, value: str, number: int) -> FilterChoice:
    is_chosen = asked[name] == value
    fields = {**asked, name: "" if is_chosen else value}
    query = urlencode({field: text for field, text in fields.items() if text})
    return FilterChoice(label=value, number=number, query=query, is_chosen=is_chosen)
