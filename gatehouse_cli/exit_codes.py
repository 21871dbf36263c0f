"""ExitCode, what exit codes mean; CliError, which ends the command; whether colour is wanted."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import IO, Any

import click


class ExitCode(IntEnum):
    """Exit codes of every subcommand, as ``kubectl diff`` has them.

    ``FOUND`` is an answer, no failure: there are differences, or something is refused.
    """

    OK = 0
    FOUND = 1
    ERROR = 2
    HELD = 3
    """Nothing was written: conflicts or a brake wait for a person's decision."""
    INTERRUPTED = 130


class CliError(click.ClickException):
    """An error in words for a person: what is wrong and what helps; no usage, no traceback."""

    exit_code = ExitCode.ERROR

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error, each line as it is."""
        label = click.style("gatehouse:", fg="red", bold=True)
        text = f"{label} {self.format_message()}"
        click.echo(text, file=file, err=file is None, color=wanted_colour())


def wanted_colour() -> bool | None:
    """Whether to write in colour: never with NO_COLOR (no-color.org); None is on terminals."""
    return False if os.environ.get("NO_COLOR") else None
