"""The layout of stories: headed parts, left out if empty; aligned rows; names of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def part(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """An empty line, the heading, and the lines under it; nothing without lines."""
    under = list(lines)
    if under:
        yield ""
        yield click.style(heading, bold=True)
        yield from (f"  {line}" for line in under)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as columns, the last one as long as it is."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in rows
    ]


def policy_title(named: Mapping[str, Any] | None) -> str:
    """A policy as people name it; empty without one."""
    if not named:
        return ""
    namespace = named.get("namespace")
    place = f"{namespace}/" if namespace else ""
    revision = f", revision {named['revision']}" if named.get("revision") else ""
    return f"{named['kind']} {place}{named['name']}{revision}"
