"""``gatehouse changes replay``: recorded requests judged under a change, waited for and told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gatehouse_cli.client import operations
from gatehouse_cli.commands.changes.number import change_argument
from gatehouse_cli.connection import Connection, connected
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.objects.replays import cancelling, report_of, waited_for
from gatehouse_cli.output import OutputForm, output_option
from gatehouse_cli.stories.replay import replay_lines
from policies.manifests.render import render_documents

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import ReplayDetailJson

MOST_DAYS = 366


@click.command("replay")
@change_argument
@click.option(
    "--days",
    type=click.IntRange(1, MOST_DAYS),
    default=7,
    show_default=True,
    help="How far back.",
)
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@connected
@click.pass_context
def replay(
    context: click.Context, *, connection: Connection, number: int, days: int, output: OutputForm
) -> None:
    """Judge the requests of the last days under a change, once for each of its clusters.

    The change keeps the result. Ctrl-C cancels it.

    Exit codes: 0 no request would newly be denied; 1 some would; 2 an error, also a replay that
    was cancelled or failed.
    """
    with connection.open() as session:
        operation = operations.CHANGES_REPLAY_CREATE
        asked = session.call(operation, names={"id": number}, body={"days": days})
        uids = [each["uid"] or "" for each in asked["replays"]]
        with cancelling(session, uids):
            found = [waited_for(session, uid) for uid in uids]
    denied = sum(report_of(each)["verdicts"]["changes"]["to_denied"]["number"] for each in found)
    _print(found, output)
    context.exit(ExitCode.FOUND if denied else ExitCode.OK)


def _print(found: list[ReplayDetailJson], output: OutputForm) -> None:
    documents: list[Any] = [*found]
    if output is OutputForm.JSON:
        click.echo(json.dumps(documents, indent=2, ensure_ascii=False))
    elif output is OutputForm.YAML:
        click.echo(render_documents(documents), nl=False)
    else:
        for number, each in enumerate(found):
            gap, title = "\n" if number else "", click.style(each["cluster"], bold=True)
            click.echo(f"{gap}{title}")
            click.echo("\n".join(replay_lines(report_of(each))))
