"""ID of a change on the command line, its content as it was seen, and refusals that hold it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.client.problems import ProblemError
from gatehouse_cli.exit_codes import CliError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gatehouse_cli.client.answers import ChangeDetailJson
    from gatehouse_cli.client.session import PortalSession

    Function = Callable[..., Any]

_NUMBER: Final = re.compile("(?:change/|#)?([0-9]{1,18})")
SHORTEST: Final = 8
"""Digits of a content's hash that are enough to name it."""


class ChangeNumber(click.ParamType[int]):
    """The number of a change, also as ``#12`` and ``change/12``, which ``-o name`` prints."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number."""
        found = _NUMBER.fullmatch(str(value))
        if found is None:
            self.fail(f'"{value}" is no number of a change', param, ctx)
        return int(found[1])


def change_argument(function: Function) -> Function:
    """Declare ``ID``, passed as ``number``."""
    return click.argument("number", metavar="ID", type=ChangeNumber())(function)


def content_option(function: Function) -> Function:
    """Declare ``--content``, passed as ``content``; empty if it is not given."""
    return click.option(
        "--content",
        metavar="HASH",
        default="",
        help="Only this content, as show prints it: it may have been edited since.",
    )(function)


@contextmanager
def held() -> Iterator[None]:
    """End the command with HELD where the portal refuses a step for how the change stands."""
    try:
        yield
    except ProblemError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        error.show()
        click.get_current_context().exit(ExitCode.HELD)


def change_of(session: PortalSession, number: int) -> ChangeDetailJson:
    """The change; raises CliError without one that the caller may see."""
    try:
        return session.call(operations.CHANGES_RETRIEVE, names={"id": number})
    except ProblemError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise CliError(f"there is no change {number} that you may see") from error
        raise


def seen_content(session: PortalSession, number: int, given: str) -> str:
    """The hash of a change's content; ends the command with HELD where it is not the given one."""
    if given and len(given) < SHORTEST:
        raise click.UsageError(f"--content needs {SHORTEST} digits or more")
    found = change_of(session, number)["content_hash"]
    if not found.startswith(given):
        CliError(f"change #{number} has another content now: {found[:12]}; look at it again").show()
        click.get_current_context().exit(ExitCode.HELD)
    return found
