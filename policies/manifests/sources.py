"""Read files, folders and standard input into named texts, and texts into documents."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from policies.manifests.documents import ManifestError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from policies.manifests.documents import Document

LARGEST_FILE = 8 * 1024 * 1024
STANDARD_INPUT = "-"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Source:
    """One text, and what it is called in messages."""

    name: str
    text: str


def read_sources(names: Iterable[str]) -> list[Source]:
    """Read files, folders (their YAML and JSON files, deep, in name order) and ``-``.

    Raises ManifestError with every file that cannot be read.
    """
    problems: list[Problem] = []
    sources: list[Source] = []
    for name in names:
        for path in _files_of(name):
            try:
                sources.append(_read(path))
            except ManifestError as error:
                problems += error.problems
    if problems:
        raise ManifestError(problems)
    return sources


def _files_of(name: str) -> Iterator[str]:
    path = Path(name)
    if name == STANDARD_INPUT or not path.is_dir():
        yield name
        return
    found = (p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    yield from sorted(str(p) for p in found)


def _read(name: str) -> Source:
    shown = "<stdin>" if name == STANDARD_INPUT else name
    try:
        raw = _read_bytes(name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ManifestError([Problem(source=shown, message=reason)]) from error
    if len(raw) > LARGEST_FILE:
        size = LARGEST_FILE // 1024 // 1024
        raise ManifestError([Problem(source=shown, message=f"larger than {size} MiB")])
    try:
        return Source(shown, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        problem = Problem(
            source=shown, line=line, column=column, message="not UTF-8", hint="save it as UTF-8"
        )
        raise ManifestError([problem]) from error


def _read_bytes(name: str) -> bytes:
    """Read a little more than is allowed, so that an endless file does no harm."""
    if name == STANDARD_INPUT:
        return _take(sys.stdin.buffer)
    with Path(name).open("rb") as file:
        return _take(file)


def _take(file: BinaryIO) -> bytes:
    return file.read(LARGEST_FILE + 1)


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
