"""The roll-out of a change: planned from a file, started, carried on, stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from gatehouse_cli.client import operations
from gatehouse_cli.commands.changes.number import (
    change_argument,
    content_option,
    held,
    seen_content,
)
from gatehouse_cli.connection import Connection, connected
from gatehouse_cli.exit_codes import CliError
from gatehouse_cli.output import OutputForm, output_option, print_object
from gatehouse_cli.stories.rollout import rollout_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatehouse_cli.client.answers import RolloutJson
    from gatehouse_cli.client.shape import ApiOperation

    Function = Callable[..., Any]

_FORMS = (OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)


def _steps(function: Function) -> Function:
    """Declare the change, the form of the output, and the portal."""
    return change_argument(output_option(*_FORMS)(connected(function)))


@click.command("plan")
@click.option("-f", "--filename", "path", metavar="PATH", default="", help="A file, or -.")
@_steps
def plan(*, connection: Connection, number: int, path: str, output: OutputForm) -> None:
    r"""Set the plan of a roll-out from YAML or JSON; without a file, show the stored one.

    \b
      waves:
      - {clusters: [dev], stages: [{mode: enforce, dwell: 3600}]}
      - {percent: 10, stages: [{mode: enforce, dwell: 7200}]}
      - {stages: [{mode: enforce, dwell: 3600}]}
      guards: [{kind: denials_per_owner, above: 5}]
      on_trip: stop

    dwell is in seconds. A plan can be set until the roll-out is started.
    """
    sent = _read(path) if path else None
    with connection.open() as session, held():
        names = {"id": number}
        if sent is None:
            found = session.call(operations.CHANGES_ROLLOUT_RETRIEVE, names=names)
        else:
            found = session.call(operations.CHANGES_ROLLOUT_UPDATE, names=names, body=sent)
    _print(found, output)


@click.command("start")
@click.option("-m", "--note", metavar="TEXT", default="", help="What is said of it, on record.")
@content_option
@_steps
def start(
    *, connection: Connection, number: int, note: str, content: str, output: OutputForm
) -> None:
    """Start the roll-out of an approved change: its first stage is written."""
    with connection.open() as session, held():
        body = {"content_hash": seen_content(session, number, content)}
        body |= {"note": note} if note else {}
        operation = operations.CHANGES_ROLLOUT_START_CREATE
        found = session.call(operation, names={"id": number}, body=body)
    _print(found, output)


@click.command("advance")
@click.option("--stage", type=click.IntRange(1, 1000), help="The stage to leave; by default now's.")
@_steps
def advance(*, connection: Connection, number: int, stage: int | None, output: OutputForm) -> None:
    """Leave a stage before its time.

    A pipeline names it with --stage: nothing happens where it is left already.
    """
    with connection.open() as session, held():
        names = {"id": number}
        at = stage or session.call(operations.CHANGES_ROLLOUT_RETRIEVE, names=names)["at"]
        if not at:
            raise CliError(f"the roll-out of change #{number} is not started")
        operation = operations.CHANGES_ROLLOUT_ADVANCE_CREATE
        found = session.call(operation, names=names, body={"expected": at})
    _print(found, output)


@click.command("stop")
@click.option("-m", "--note", metavar="TEXT", default="", help="What is said of it, on record.")
@_steps
def stop(*, connection: Connection, number: int, note: str, output: OutputForm) -> None:
    """Stop a roll-out where it is; what is written stays, and revert takes it back."""
    _move(connection, operations.CHANGES_ROLLOUT_STOP_CREATE, number, note=note, output=output)


@click.command("resume")
@click.option("-m", "--note", metavar="TEXT", default="", help="What is said of it, on record.")
@_steps
def resume(*, connection: Connection, number: int, note: str, output: OutputForm) -> None:
    """Go on where a roll-out stopped; guards count anew."""
    _move(connection, operations.CHANGES_ROLLOUT_RESUME_CREATE, number, note=note, output=output)


def _move(
    connection: Connection,
    operation: ApiOperation[RolloutJson],
    number: int,
    *,
    note: str,
    output: OutputForm,
) -> None:
    body = {"note": note} if note else {}
    with connection.open() as session, held():
        found = session.call(operation, names={"id": number}, body=body)
    _print(found, output)


def _print(found: RolloutJson, output: OutputForm) -> None:
    if output is OutputForm.TABLE:
        click.echo("\n".join(rollout_lines(found)))
    else:
        print_object(dict(found), output)


def _read(path: str) -> Any:
    """The plan of a file, as JSON has it; raises CliError."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        # Dates and binary data of YAML are no members of a plan.
        return json.loads(json.dumps(yaml.safe_load(text)))
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise CliError(f"{path}: {' '.join(str(error).split())}") from error
