"""``gatehouse compare``: what differs between two instants, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.connection import Connection, cluster_option, connected, namespace_option
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.output import OutputForm, output_option, print_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatehouse_cli.client.answers import ComparisonJson, PastDifferenceJson
    from gatehouse_cli.client.session import PortalSession

_PAGE: Final = 500


@click.command("compare")
@click.option("--from", "begin", metavar="INSTANT", required=True, help="The earlier instant.")
@click.option("--to", "end", metavar="INSTANT", default="", help="The later one; by default now.")
@cluster_option
@click.option("--all-clusters", is_flag=True, help="Ignore the context's cluster.")
@namespace_option
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@connected
@click.pass_context
def command(  # noqa: PLR0913  one parameter an option
    context: click.Context,
    *,
    connection: Connection,
    begin: str,
    end: str,
    cluster: str,
    all_clusters: bool,
    namespace: str,
    output: OutputForm,
) -> None:
    """Tell what differs between two instants of the fleet, a cluster or a namespace.

    What was changed and changed back is left out.

    \b
      gatehouse compare --from 2026-11-03T14:05Z --cluster prod
      gatehouse compare --from 2026-11-03T14:05Z --to 2026-11-04T09:00Z --all-clusters -o json

    Exit codes: 0 no difference; 1 differences; 2 an error.
    """  # noqa: D301  \b is click's mark
    if cluster and all_clusters:
        raise click.UsageError("--cluster does not go with --all-clusters")
    place = "" if all_clusters else cluster or connection.context.cluster
    query = {"from": begin, "to": end, "cluster": place, "namespace": namespace}
    with connection.open() as session:
        found = _compared(session, {name: text for name, text in query.items() if text})
    if output is OutputForm.TABLE:
        for line in _lines(found):
            click.echo(line)
    else:
        print_object(dict(found), output)
    context.exit(ExitCode.FOUND if found["differences"] else ExitCode.OK)


def _compared(session: PortalSession, query: dict[str, Any]) -> ComparisonJson:
    """All pages of a comparison in one."""
    operation = operations.COMPARE_RETRIEVE
    found = session.call(operation, query={**query, "limit": _PAGE})
    while len(found["differences"]) < found["count"]:
        offset = len(found["differences"])
        page = session.call(operation, query={**query, "limit": _PAGE, "offset": offset})
        if not page["differences"]:
            break
        found["differences"] += page["differences"]
    return found


def _lines(found: ComparisonJson) -> Iterator[str]:
    for each in found["differences"]:
        yield f"{_sign(each)} {each['kind']} {_place(each)}"
        yield from (f"    {words}" for words in each["words"])
    if not found["differences"]:
        yield "no difference"
    for is_known, words in ((found["knows_usage"], "usage"), (found["knows_roles"], "roles")):
        if not is_known:
            yield f"{words}: not known of both instants"


def _sign(found: PastDifferenceJson) -> str:
    if found["before"] is None:
        return "+"
    return "-" if found["after"] is None else "~"


def _place(found: PastDifferenceJson) -> str:
    return "/".join(filter(None, (found["cluster"], found["namespace"], found["name"])))
