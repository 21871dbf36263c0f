"""The steps of a change: submitted, reviewed, commented on, published, reverted, abandoned."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gatehouse_cli.client import operations
from gatehouse_cli.commands.changes.number import (
    change_argument,
    content_option,
    held,
    seen_content,
)
from gatehouse_cli.connection import Connection, connected
from gatehouse_cli.output import OutputForm, output_option, print_object
from gatehouse_cli.stories.change import standing_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatehouse_cli.client.answers import ChangeDetailJson
    from gatehouse_cli.client.shape import ApiOperation

    Function = Callable[..., Any]


def _note(*, is_required: bool = False) -> Callable[[Function], Function]:
    """Declare ``--note``, passed as ``note``."""
    return click.option(
        "-m",
        "--note",
        metavar="TEXT",
        required=is_required,
        default=None if is_required else "",
        help="What is said of the step, on record.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnChange:
    """The change that a command is about, where it is, and how it is printed."""

    connection: Connection
    number: int
    output: OutputForm

    def take(
        self,
        operation: ApiOperation[ChangeDetailJson],
        *,
        said: dict[str, str],
        content: str | None = None,
    ) -> None:
        """Take a step, and print how the change stands; ``content`` None: whatever it is."""
        body = {name: text for name, text in said.items() if text}
        with self.connection.open() as session, held():
            if content is not None:
                body["content_hash"] = seen_content(session, self.number, content)
            change = session.call(operation, names={"id": self.number}, body=body)
        if self.output is OutputForm.TABLE:
            click.echo("\n".join(standing_lines(change)))
        else:
            print_object(dict(change), self.output)


def _steps(function: Function) -> Function:
    """Declare the change, the form of the output, and the portal, passed as ``on``."""

    @change_argument
    @output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
    @connected
    @functools.wraps(function)
    def on_change(*, connection: Connection, number: int, output: OutputForm, **more: Any) -> Any:
        on = _OnChange(connection=connection, number=number, output=output)
        return function(on=on, **more)

    return on_change


@click.command("submit")
@_note()
@content_option
@_steps
def submit(*, on: _OnChange, note: str, content: str) -> None:
    """Submit a draft; where no rule asks for approvals, it is approved at once."""
    on.take(operations.CHANGES_SUBMIT_CREATE, said={"note": note}, content=content)


@click.command("withdraw")
@_note()
@_steps
def withdraw(*, on: _OnChange, note: str) -> None:
    """Take a submitted change back to a draft."""
    on.take(operations.CHANGES_WITHDRAW_CREATE, said={"note": note})


@click.command("approve")
@_note()
@content_option
@_steps
def approve(*, on: _OnChange, note: str, content: str) -> None:
    """Approve the content of a change, which nobody does for their own.

    With --content, only the content that was looked at: any edit makes another one.
    """
    on.take(operations.CHANGES_APPROVE_CREATE, said={"note": note}, content=content)


@click.command("request-changes")
@_note(is_required=True)
@_steps
def request_changes(*, on: _OnChange, note: str) -> None:
    """Send a change back to its author, as a draft, with a note on what has to be other."""
    on.take(operations.CHANGES_REQUESTCHANGES_CREATE, said={"note": note})


@click.command("comment")
@_note(is_required=True)
@_steps
def comment(*, on: _OnChange, note: str) -> None:
    """Comment on a change."""
    on.take(operations.CHANGES_COMMENT_CREATE, said={"note": note})


@click.command("publish")
@_note()
@content_option
@_steps
def publish(*, on: _OnChange, note: str, content: str) -> None:
    """Write all objects of an approved change, or none: those that moved since are named."""
    on.take(operations.CHANGES_PUBLISH_CREATE, said={"note": note}, content=content)


@click.command("publish-now")
@click.option("--reason", metavar="TEXT", required=True, help="Why it cannot wait, on record.")
@content_option
@_steps
def publish_now(*, on: _OnChange, reason: str, content: str) -> None:
    """Publish without approvals, in an emergency; flagged until somebody else reviews it."""
    on.take(operations.CHANGES_PUBLISHNOW_CREATE, said={"reason": reason}, content=content)


@click.command("review")
@_note()
@_steps
def review(*, on: _OnChange, note: str) -> None:
    """Say that a change which was published without approvals was looked at."""
    on.take(operations.CHANGES_REVIEW_CREATE, said={"note": note})


@click.command("abandon")
@_note()
@_steps
def abandon(*, on: _OnChange, note: str) -> None:
    """Give a change up that is not published."""
    on.take(operations.CHANGES_ABANDON_CREATE, said={"note": note})


@click.command("revert")
@_note()
@_steps
def revert(*, on: _OnChange, note: str) -> None:
    """Restore what was there before a change, or name the objects that were written since."""
    on.take(operations.CHANGES_REVERT_CREATE, said={"note": note})
