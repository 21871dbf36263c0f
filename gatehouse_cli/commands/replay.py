"""``gatehouse replay``: the decisions of the last days under policies in files."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.connection import Connection, cluster_option, connected
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.objects.replays import cancelling, report_of, waited_for
from gatehouse_cli.output import OutputForm, output_option, print_object
from gatehouse_cli.plans.files import read_files
from gatehouse_cli.stories.replay import replay_lines

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import ReplayDetailJson
    from gatehouse_cli.client.session import PortalSession

_LENGTH: Final = re.compile(r"([1-9][0-9]{0,3})([hd])")
_UNITS: Final = {"h": "hours", "d": "days"}
_DELETION_PARTS: Final = 3


def _length(_context: click.Context, _parameter: click.Parameter, given: str) -> timedelta:
    found = _LENGTH.fullmatch(given)
    if found is None:
        raise click.BadParameter(f'"{given}": write a number of days or hours, as 7d or 12h')
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _deletions(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> list[dict[str, str]]:
    deletions = []
    for text in given:
        parts = text.split("/")
        if len(parts) != _DELETION_PARTS or not all(parts):
            raise click.BadParameter(f'"{text}": write KIND/NAMESPACE/NAME')
        deletions.append(dict(zip(("kind", "namespace", "name"), parts, strict=True)))
    return deletions


@click.command("replay")
@click.option(
    "-f",
    "--filename",
    "paths",
    metavar="PATH",
    multiple=True,
    help="A file, a folder with all its YAML and JSON files, or - for standard input.",
)
@click.option(
    "--delete",
    "deletions",
    metavar="KIND/NAMESPACE/NAME",
    multiple=True,
    callback=_deletions,
    help="Propose to delete a policy.",
)
@click.option(
    "--since",
    "length",
    metavar="LENGTH",
    default="7d",
    show_default=True,
    callback=_length,
    help="How far back, such as 7d or 12h.",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    metavar="NAME",
    multiple=True,
    help="Only decisions of these; by default of the namespaces of the proposed policies.",
)
@click.option(
    "--query", metavar="WORDS", default="", help="A query, as in the search bar of decisions."
)
@cluster_option
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@connected
@click.pass_context
def command(  # noqa: PLR0913  one parameter an option
    context: click.Context,
    *,
    connection: Connection,
    paths: tuple[str, ...],
    deletions: list[dict[str, str]],
    length: timedelta,
    namespaces: tuple[str, ...],
    query: str,
    cluster: str,
    output: OutputForm,
) -> None:
    """Judge recorded decisions by the present policies, and by those in files put into them.

    Nothing is stored but the result. Ctrl-C cancels the replay.

    \b
      gatehouse replay --since 7d -f proposed/ --cluster prod
      gatehouse replay -f proposed/ --delete LimitRange/shop/old -n shop -o json

    Exit codes: 0 no request would newly be denied; 1 some would; 2 an error, also a replay that was
    cancelled or failed.
    """  # noqa: D301  \b is click's mark
    if not (paths or deletions):
        raise click.UsageError("name files with -f, or policies with --delete")
    body: dict[str, Any] = {"cluster": connection.require_cluster(cluster)}
    if paths:
        body["manifests"] = read_files(paths).text
    since = datetime.now(UTC) - length
    body |= {"deletions": deletions, "namespaces": list(namespaces), "query": query}
    body = {name: value for name, value in body.items() if value}
    with connection.open() as session:
        found = _replayed(session, {**body, "since": f"{since:%Y-%m-%dT%H:%M:%SZ}"})
    report = report_of(found)
    if output is OutputForm.TABLE:
        click.echo("\n".join(replay_lines(report)))
    else:
        print_object(dict(found), output)
    is_found = report["verdicts"]["changes"]["to_denied"]["number"] > 0
    context.exit(ExitCode.FOUND if is_found else ExitCode.OK)


def _replayed(session: PortalSession, body: dict[str, Any]) -> ReplayDetailJson:
    """Request a replay and wait for its end; an interrupt cancels it."""
    uid = session.call(operations.REPLAYS_CREATE, body=body)["uid"] or ""
    with cancelling(session, [uid]):
        return waited_for(session, uid)
