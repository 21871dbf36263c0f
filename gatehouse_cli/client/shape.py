"""ApiOperation: method, address and parameters of one call of the API; Page: a part of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

Answer_co = TypeVar("Answer_co", covariant=True)
Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """A part of a list; ``next`` is the address of the following part."""

    next: str | None
    results: list[Item]


@dataclass(frozen=True, slots=True)
class ApiOperation(Generic[Answer_co]):
    """One operation of the API; the type parameter is its answer."""

    method: str
    path: str
    query: str = ""
    """The names of its parameters, separated by spaces."""
    repeated: str = ""
    """Those that may be given several times."""
    headers: str = ""

    def address(self, names: Mapping[str, object]) -> str:
        """The path with its names filled in."""
        quoted = {name: quote(str(value), safe="") for name, value in names.items()}
        return self.path.format_map(quoted)

    def require_known(self, query: Mapping[str, object], headers: Mapping[str, object]) -> None:
        """Raise ``TypeError`` for a parameter or header that the schema does not have."""
        known = f"{self.query} {self.repeated} {self.headers}".split()
        unknown = sorted({*query, *headers} - {*known})
        if unknown:
            raise TypeError(f"{self.method} {self.path} has no {', '.join(unknown)}")
