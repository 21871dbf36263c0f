"""``gatehouse get``: objects and records of the portal as a table, YAML, JSON or names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.client.problems import ProblemError
from gatehouse_cli.connection import Connection, cluster_option, connected, namespace_option
from gatehouse_cli.console import progress
from gatehouse_cli.objects.kinds import Kind, KindType
from gatehouse_cli.objects.lookup import Selection, at_option, find, listed, name_of
from gatehouse_cli.objects.manifest import manifest_of
from gatehouse_cli.output import OutputForm, output_option, print_object, print_objects

if TYPE_CHECKING:
    from gatehouse_cli.client.session import PortalSession

NEWEST: Final = 100
"""Rows of a record that are shown where no number is given."""
_DECISION_ID: Final = re.compile("[0-9a-z]{16}")


@click.command("get")
@click.argument("kind", type=KindType())
@click.argument("name", default="")
@namespace_option
@cluster_option
@click.option("--all-clusters", is_flag=True, help="Ignore the context's cluster.")
@click.option("-l", "--selector", metavar="LABELS", default="", help="As in kubectl get -l.")
@click.option(
    "--filter",
    "filters",
    metavar="PARAMETER=VALUE",
    multiple=True,
    help="A filter or ordering of the API, such as verdict=denied; repeatable.",
)
@at_option
@click.option("--limit", type=click.IntRange(min=0), help="Show the first ones only; 0 shows all.")
@output_option()
@connected
def command(  # noqa: PLR0913  one parameter an option
    *,
    connection: Connection,
    kind: Kind,
    name: str,
    namespace: str,
    cluster: str,
    all_clusters: bool,
    selector: str,
    filters: tuple[str, ...],
    at: str,
    limit: int | None,
    output: OutputForm,
) -> None:
    """Show objects, or the one of NAME.

    KIND is clusters, namespaces (ns), limitranges (limits), metadatapolicies (mdp),
    resourcequotas (quota), tests, priorityclasses (pc), limitedresources, decisions or revisions.
    Of decisions and revisions, the newest 100 are shown unless --limit says otherwise; NAME is a
    prefix of the object's name there, or a decision's id. With --at, objects are as they were then.
    """
    selection = Selection(
        cluster=_cluster(connection, kind, cluster, all_clusters=all_clusters),
        namespace=namespace,
        name=name,
        labels=selector,
        at=at,
        filters=_parsed(filters),
    )
    with connection.open() as session:
        if name and not kind.is_record:
            _print_one(kind, find(session, kind, selection), output)
        elif decision := _decision(session, kind, name):
            _print_one(kind, decision, output)
        else:
            most = limit if limit is not None else NEWEST * kind.is_record
            _print_list(session, kind, selection, most=most, output=output)


def _cluster(connection: Connection, kind: Kind, given: str, *, all_clusters: bool) -> str:
    if given and (all_clusters or not kind.cluster_filter):
        conflict = "--all-clusters" if all_clusters else f"a list of {kind.plural}"
        raise click.UsageError(f"--cluster does not go with {conflict}")
    is_wide = all_clusters or not kind.cluster_filter
    return given or ("" if is_wide else connection.context.cluster)


def _parsed(filters: tuple[str, ...]) -> dict[str, str]:
    parsed = {}
    for each in filters:
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            raise click.UsageError(f'--filter "{each}" is not of the form PARAMETER=VALUE')
        if name in parsed:
            raise click.UsageError(f"--filter {name} is given twice")
        parsed[name] = value
    return parsed


def _decision(session: PortalSession, kind: Kind, name: str) -> Any:
    """The decision of this id, None if it is another name."""
    if kind.plural != "decisions" or not _DECISION_ID.fullmatch(name):
        return None
    try:
        return session.call(operations.DECISIONS_RETRIEVE, names={"id": name})
    except ProblemError as error:
        if error.status == 404:  # noqa: PLR2004  not found
            return None
        raise


def _print_one(kind: Kind, shown: dict[str, Any], output: OutputForm) -> None:
    if output is OutputForm.YAML:
        print_object(manifest_of(kind, shown), output)
    elif output is OutputForm.JSON:
        print_object(shown, output)
    else:
        _print([shown], kind, output)


def _print_list(
    session: PortalSession, kind: Kind, selection: Selection, *, most: int, output: OutputForm
) -> None:
    found = []
    with progress(f"reading {kind.plural}") as report:
        # One more tells whether there are others.
        for each in listed(session, kind, selection, most=most + 1 if most else 0):
            found.append(each)
            report(1)
    shown = found[:most] if most else found
    if output is OutputForm.TABLE and not shown:
        click.echo(f"no {kind.plural} found{selection}", err=True)
        return
    _print(
        [manifest_of(kind, e) for e in shown] if output is OutputForm.YAML else shown, kind, output
    )
    if len(found) > len(shown):
        click.echo(f"there are more; the first {most} are shown (--limit 0: all)", err=True)


def _print(shown: list[dict[str, Any]], kind: Kind, output: OutputForm) -> None:
    print_objects(
        shown, output, columns=kind.columns, name_of=lambda each: f"{kind.singular}/{_label(each)}"
    )


def _label(shown: Any) -> str:
    is_record = "metadata" not in shown and "id" in shown and "kind" in shown
    return str(shown["id"]) if is_record else name_of(shown)
