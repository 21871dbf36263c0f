"""``gatehouse changes list`` and ``show``."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.client.problems import ProblemError
from gatehouse_cli.commands.changes.number import change_argument, change_of
from gatehouse_cli.connection import Connection, connected
from gatehouse_cli.objects.columns import OF_CHANGES
from gatehouse_cli.output import OutputForm, output_option, print_object, print_objects
from gatehouse_cli.stories.change import change_lines
from policies.change_sets.states import STATES

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import RolloutJson
    from gatehouse_cli.client.session import PortalSession

NEWEST: Final = 100


@click.command("list")
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="Only these; repeatable."
)
@click.option("--author", metavar="NAME", default="", help="Only those of one author.")
@click.option("--cluster", metavar="NAME", default="", help="Only with an object there.")
@click.option("-n", "--namespace", metavar="NAME", default="", help="Only with an object there.")
@click.option("--unreviewed", is_flag=True, help="Only those published without approvals.")
@click.option("--limit", type=click.IntRange(min=0), help="Show the first ones only; 0 shows all.")
@output_option()
@connected
def list_changes(  # noqa: PLR0913  one parameter an option
    *,
    connection: Connection,
    states: tuple[str, ...],
    author: str,
    cluster: str,
    namespace: str,
    unreviewed: bool,
    limit: int | None,
    output: OutputForm,
) -> None:
    """List changes, the newest 100 unless --limit says otherwise."""
    asked = {
        "state__in": ",".join(states),
        "author": author,
        "cluster": cluster,
        "namespace": namespace,
        "unreviewed": "true" if unreviewed else "",
    }
    query = {name: text for name, text in asked.items() if text} | {"ordering": "-created"}
    most = NEWEST if limit is None else limit
    with connection.open() as session:
        # One more tells whether there are others.
        found: list[Any] = list(
            session.items(operations.CHANGES_LIST, query, most=most + 1 if most else 0)
        )
    shown = found[:most] if most else found
    if output is OutputForm.TABLE and not shown:
        click.echo("no changes found", err=True)
        return
    print_objects(shown, output, columns=OF_CHANGES, name_of=lambda each: f"change/{each['id']}")
    if len(found) > len(shown):
        click.echo(f"there are more; the first {most} are shown (--limit 0: all)", err=True)


@click.command("show")
@change_argument
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@connected
def show(*, connection: Connection, number: int, output: OutputForm) -> None:
    """Tell what a change does, what it needs, what was checked, and how its roll-out stands."""
    with connection.open() as session:
        change = change_of(session, number)
        rollout = _rollout_of(session, number)
    if output is OutputForm.TABLE:
        click.echo("\n".join(change_lines(change, rollout)))
    else:
        print_object({**change, "rollout": rollout}, output)


def _rollout_of(session: PortalSession, number: int) -> RolloutJson | None:
    """The roll-out of a change; None for one without a plan."""
    try:
        return session.call(operations.CHANGES_ROLLOUT_RETRIEVE, names={"id": number})
    except ProblemError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
