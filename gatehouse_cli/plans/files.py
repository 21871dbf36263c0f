"""Files to apply: read and checked here, joined to one text, with the place of each line."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatehouse_cli.exit_codes import CliError
from policies.manifests.bundle import read_bundle
from policies.manifests.documents import ManifestError
from policies.manifests.sources import read_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.manifests.bundle import Bundle
    from policies.manifests.sources import Source


@dataclass(frozen=True, slots=True)
class JoinedFiles:
    """The joined text of files; ``starts`` are the lines before each of them."""

    text: str
    names: tuple[str, ...]
    starts: tuple[int, ...]
    bundle: Bundle

    def place(self, line: int) -> tuple[str, int]:
        """The file and its line that a line of the joined text comes from."""
        index = max(bisect_right(self.starts, line - 1) - 1, 0)
        return self.names[index], line - self.starts[index]


def read_files(
    paths: Sequence[str], *, namespace: str = "", may_be_empty: bool = False
) -> JoinedFiles:
    """Read files, folders and ``-``; raises CliError with every problem of all of them.

    The portal would find the same, but knows no names of files.
    """
    try:
        sources = read_sources(paths)
        bundle = read_bundle(sources, **({"namespace": namespace} if namespace else {}))
    except ManifestError as error:
        raise CliError("\n".join(str(problem) for problem in error.problems)) from error
    if not (bundle.objects or bundle.classes or bundle.configuration or may_be_empty):
        raise CliError(f"there is no policy in {', '.join(paths)}")
    text, starts = _joined(sources)
    return JoinedFiles(text, tuple(source.name for source in sources), tuple(starts), bundle)


def _joined(sources: Iterable[Source]) -> tuple[str, list[int]]:
    texts: list[str] = []
    starts: list[int] = []
    lines = 0
    for source in sources:
        # Directives, such as %YAML, may follow only the end of a document.
        separator = "...\n" if source.text.lstrip().startswith("%") else "---\n"
        texts.append(separator if texts else "")
        lines += 1 if texts[-1] else 0
        starts.append(lines)
        texts.append(source.text if source.text.endswith("\n") else f"{source.text}\n")
        lines += texts[-1].count("\n")
    return "".join(texts), starts
