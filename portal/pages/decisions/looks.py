"""Look, how the log is shown: its columns, its order and its groups, all in the address.

Columns that somebody chose are also remembered by a cookie, as the time zone is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from portal.pages.decisions.groups import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import HttpRequest

COLUMNS: Final = {
    "cluster": "Cluster",
    "user": "User",
    "operation": "Operation",
    "duration": "Duration",
}
"""Columns beside time, verdict, object and reason, by name, with their heads."""
COOKIE: Final = "decision-columns"
_USUAL: Final = ("user", "operation", "duration")
_NONE: Final = "none"
"""In the address: an empty field would be left out."""
_OLDEST_FIRST: Final = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How the log is shown; ``kept`` are the fields of the address that say so."""

    columns: tuple[str, ...] = _USUAL
    is_oldest_first: bool = False
    group: str = ""
    kept: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: HttpRequest) -> Look:
        """Read it from the address, or the columns from the cookie; ignore what is not known."""
        kept = {}
        columns = _known(request.COOKIES[COOKIE].split(".")) if COOKIE in request.COOKIES else None
        if "columns" in request.GET:
            texts = request.GET.getlist("columns")
            columns = _known(name for text in texts for name in text.split(","))
            kept["columns"] = ",".join(columns) or _NONE
        if request.GET.get("sort") == _OLDEST_FIRST:
            kept["sort"] = _OLDEST_FIRST
        if request.GET.get("group") in GROUPS:
            kept["group"] = request.GET["group"]
        return cls(
            columns=_USUAL if columns is None else columns,
            is_oldest_first="sort" in kept,
            group=kept.get("group", ""),
            kept=kept,
        )

    @property
    def heads(self) -> Iterable[tuple[str, str]]:
        """The chosen columns with their heads."""
        return [(name, COLUMNS[name]) for name in self.columns]

    @property
    def choices(self) -> Iterable[tuple[str, str, bool]]:
        """All columns: name, head, and whether it is shown."""
        return [(name, head, name in self.columns) for name, head in COLUMNS.items()]

    @property
    def is_usual(self) -> bool:
        """Whether the columns are those that nobody chose."""
        return self.columns == _USUAL

    @property
    def cookie(self) -> str:
        """The columns as the cookie has them."""
        return ".".join(self.columns) or _NONE

    @property
    def turned(self) -> Mapping[str, str]:
        """The fields of the same look in the other order."""
        return {**self.kept, "sort": "" if self.is_oldest_first else _OLDEST_FIRST}


def _known(names: Iterable[str]) -> tuple[str, ...]:
    wanted = set(names)
    return tuple(name for name in COLUMNS if name in wanted)
