"""Source: raw UTF-8 bytes of files, folders, stdin within LARGEST_FILE; problems; its documents."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from policies.manifests.documents import ManifestError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.manifests.documents import Document

LARGEST_FILE = 8 * 1024 * 1024
STANDARD_INPUT = "-"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Source:
    """One text, and its name in messages."""

    name: str
    text: str


def read_sources(names: Iterable[str]) -> list[Source]:
    """Read files, folders (all YAML and JSON files below, in name order) and ``-``.

    Raises ManifestError with every file that cannot be read.
    """
    source_problems: list[Problem] = []
    read_texts: list[Source] = []
    for name in names:
        source_paths, folder = [name], Path(name)
        if name != STANDARD_INPUT and folder.is_dir():
            source_paths = sorted(map(str, _files_below(folder)))
        for path in source_paths:
            try:
                read_texts.append(_read_source(path))
            except ManifestError as error:
                source_problems += error.problems
    if source_problems:
        raise ManifestError(source_problems)
    return read_texts


def _files_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        # A mounted ConfigMap has each file twice: as a link, and in a folder such as ..2026_01_02.
        is_kubelets = any(part.startswith("..") for part in path.relative_to(folder).parts)
        if path.suffix.lower() in SUFFIXES and path.is_file() and not is_kubelets:
            yield path


def _read_source(name: str) -> Source:
    shown = "<stdin>" if name == STANDARD_INPUT else name
    try:
        raw_bytes = _read_bytes(name)
    except OSError as error:
        os_reason = (error.strerror or str(error)).lower()
        raise ManifestError([Problem(source=shown, message=os_reason)]) from error
    if len(raw_bytes) > LARGEST_FILE:
        most_mebibytes = LARGEST_FILE // 1024 // 1024
        raise ManifestError([Problem(source=shown, message=f"larger than {most_mebibytes} MiB")])
    try:
        return Source(shown, raw_bytes.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw_bytes.count(b"\n", 0, error.start) + 1
        column = error.start - raw_bytes.rfind(b"\n", 0, error.start)
        encoding_problem = Problem(
            source=shown, line=line, column=column, message="not UTF-8", hint="save it as UTF-8"
        )
        raise ManifestError([encoding_problem]) from error


def _read_bytes(name: str) -> bytes:
    # One byte more than allowed shows that a file is too large, also an endless one.
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read(LARGEST_FILE + 1)
    with Path(name).open("rb") as file:
        return file.read(LARGEST_FILE + 1)


def parse_documents(text: str, source: str) -> list[Document]:
    """All documents of a YAML or JSON text, without empty ones.

    Raises ManifestError with every problem of its syntax.
    """
    if len(text) > LARGEST_FILE:
        most_mebibytes = LARGEST_FILE // 1024 // 1024
        raise ManifestError(
            [Problem(source=source, message=f"larger than {most_mebibytes} MiB", hint="split")]
        )
    # Imported late, since the library stays in memory: most web processes never read YAML.
    from policies.manifests.yaml.events import read  # noqa: PLC0415 - for that memory

    return [document for document in read(text, source) if document.value is not None]
