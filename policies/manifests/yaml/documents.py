"""Read YAML and JSON into values with their places in the text; stricter than kubectl.

Aliases, tags, merge keys and duplicate keys are refused, each with its place. Numbers
keep their text (RawNumber), so that no quantity passes through a float of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from policies.manifests.problems import ManifestError, Problem

Path = tuple[str | int, ...]
Place = tuple[int, int]
LARGEST_FILE = 8 * 1024 * 1024
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


@dataclass(slots=True)
class Document:
    """One document of a file: its value, and where each of its parts begins."""

    source: str
    value: Any = None
    places: dict[Path, Place] = field(default_factory=dict)

    def place_of(self, field_text: str) -> Place:
        """Line and column of a field path such as ``spec.limits[0].max[cpu]``, or of its parent."""
        path: Path = ()
        for bracket, name in _STEP.findall(field_text):
            step: str | int = name or (int(bracket) if bracket.isdecimal() else bracket)
            if (*path, step) not in self.places:
                break
            path = (*path, step)
        return self.places.get(path, (0, 0))

    def problem(
        self, field_text: str, message: str, hint: str = "", code: str = "invalid"
    ) -> Problem:
        """A finding at a field of this document."""
        line, column = self.place_of(field_text)
        return Problem(
            source=self.source,
            line=line,
            column=column,
            field=field_text,
            message=message,
            hint=hint,
            code=code,
        )


def parse_documents(text: str, source: str) -> list[Document]:
    """All documents of a YAML or JSON text, empty ones left out.

    Raises ManifestError with every problem of its syntax.
    """
    if len(text) > LARGEST_FILE:
        size = LARGEST_FILE // 1024 // 1024
        raise ManifestError(
            [Problem(source=source, message=f"larger than {size} MiB", hint="split")]
        )
    # YAML's library stays in memory: a web process that nobody writes to is spared it.
    from policies.manifests.yaml.events import read  # noqa: PLC0415 - for that memory

    return [document for document in read(text, source) if document.value is not None]
