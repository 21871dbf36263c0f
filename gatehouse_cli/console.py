"""Rich's consoles of standard output and error, in colour only on terminals; progress bars."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def output_console() -> Console:
    """Make the console of standard output; lines are never wrapped, so that pipes get them whole.

    Rich itself heeds NO_COLOR, FORCE_COLOR and TERM=dumb.
    """
    return Console(highlight=False, soft_wrap=True, emoji=False, markup=False)


def error_console() -> Console:
    """Make the console of standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False, markup=False)


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while the block runs; on a terminal only, and removed after it.

    Gives the function that reports how many parts are done since its last call.
    """
    console = error_console()
    if not console.is_terminal:
        yield lambda _done: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as shown:
        task = shown.add_task(title, total=total)
        yield lambda done: shown.advance(task, done)
