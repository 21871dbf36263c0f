"""Progress of long work: a bar on standard error, on a terminal only, and gone at the end."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

_PATIENCE: Final = 0.5
"""Seconds of work before a bar appears: what is done by then needs none."""


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show how much of ``total`` is done while the block runs; None is of unknown length.

    Gives the function that reports how many parts are done since its last call.
    """
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    shown: list[Progress] = []
    began, done = time.monotonic(), 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        if not shown and (total is None or time.monotonic() - began > _PATIENCE):
            shown.append(_bar(title, total))
        if shown:
            shown[0].update(shown[0].task_ids[0], completed=done)

    try:
        if total is None:
            advance(0)
        yield advance
    finally:
        for bar in shown:
            bar.stop()


def _bar(title: str, total: int | None) -> Progress:
    # Imported late: it takes longer than most runs, and pipelines have no terminal.
    from rich.console import Console  # noqa: PLC0415 - for that time
    from rich.progress import (  # noqa: PLC0415 - the same
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    if total is not None:
        columns.insert(2, MofNCompleteColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(title, total=total)
    bar.start()
    return bar
