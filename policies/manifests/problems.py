"""Problems of a file: the place of each, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding in one file; ``line`` and ``column`` count from 1, 0 where unknown.

    ``code`` is for machines: what kind of fault it is.
    """

    source: str
    line: int = 0
    column: int = 0
    field: str = ""
    message: str
    hint: str = ""
    code: str = "invalid"

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        field = f"{self.field}: " if self.field else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}: {field}{self.message}{hint}"

    def to_json(self) -> dict[str, object]:
        """The finding for machines."""
        return {
            "file": self.source,
            "line": self.line,
            "column": self.column,
            "field": self.field,
            "message": self.message,
            "hint": self.hint,
        }


class ManifestError(ValueError):
    """A file that cannot be used; carries every problem found in it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems
