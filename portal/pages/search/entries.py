"""PaletteEntry: one result of the palette; PaletteGroup: results of one kind, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One result: its name, its kind or place, its address."""

    name: str
    what: str
    address: str


@dataclass(frozen=True, slots=True)
class PaletteGroup:
    """Results of one kind; ``total`` counts those that are not shown, too."""

    label: str
    icon: str
    entries: Sequence[PaletteEntry]
    total: int


def listed(rows: Any, most: int, entry: Callable[[Any], PaletteEntry]) -> tuple[list[Any], int]:
    """The first rows as entries, and the number of all; counted only where there are more."""
    first = list(rows[: most + 1])
    total = rows.count() if len(first) > most else len(first)
    return [entry(row) for row in first[:most]], total


def decisions_of(name: str) -> PaletteEntry:
    """The decisions about requests of a user whose name begins so, as far as the reader sees."""
    address = f"{reverse('decision-list')}?{urlencode({'user': name})}"
    return PaletteEntry(f"Decisions of {name}", "user", address)
