"""Document, Problem, ManifestError: line and column of each field path, message, hint, code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]
Place = tuple[int, int]
_PATH_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem in one file; ``line`` and ``column`` count from 1, 0 if unknown.

    ``code`` is the kind of problem, for machines.
    """

    source: str
    line: int = 0
    column: int = 0
    field: str = ""
    message: str
    hint: str = ""
    code: str = "invalid"

    def __str__(self) -> str:
        file_line_column = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        field = f"{self.field}: " if self.field else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{file_line_column}: {field}{self.message}{hint}"

    def to_json(self) -> dict[str, object]:
        """The problem as JSON."""
        return {
            "file": self.source,
            "line": self.line,
            "column": self.column,
            "field": self.field,
            "message": self.message,
            "hint": self.hint,
        }


class ManifestError(ValueError):
    """Files that cannot be used, with every problem found in them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems


@dataclass(slots=True)
class Document:
    """One document of a file: its value, and where each of its parts begins."""

    source: str
    value: Any = None
    places: dict[Path, Place] = field(default_factory=dict)

    def place_of(self, field_text: str) -> Place:
        """Line and column of a field path such as ``spec.limits[0].max[cpu]``, or of its parent."""
        path: Path = ()
        for bracket, name in _PATH_STEP.findall(field_text):
            path_step: str | int = name or (int(bracket) if bracket.isdecimal() else bracket)
            if (*path, path_step) not in self.places:
                break
            path = (*path, path_step)
        return self.places.get(path, (0, 0))

    def problem(
        self, field_text: str, message: str, hint: str = "", code: str = "invalid"
    ) -> Problem:
        """A problem at a field of this document."""
        field_line, field_column = self.place_of(field_text)
        return Problem(
            source=self.source,
            line=field_line,
            column=field_column,
            field=field_text,
            message=message,
            hint=hint,
            code=code,
        )
