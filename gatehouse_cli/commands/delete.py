"""``gatehouse delete``: objects named on the command line or in files, after a confirmation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gatehouse_cli.connection import Connection, cluster_option, connected, namespace_option
from gatehouse_cli.objects.kinds import Kind, KindType
from gatehouse_cli.objects.lookup import Selection
from gatehouse_cli.objects.removal import Doomed, find_all, in_files, require_removable
from gatehouse_cli.plans.files import read_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatehouse_cli.client.session import PortalSession


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What the command line names, and where."""

    kind: Kind | None
    name: str
    paths: tuple[str, ...]
    namespace: str
    cluster: str

    def wanted(self) -> list[tuple[Kind, Selection]]:
        """The objects to look for; raises UsageError, and CliError for faulty files."""
        if self.paths:
            if self.kind:
                raise click.UsageError("name objects, or files with -f, not both")
            bundle = read_files(self.paths, namespace=self.namespace).bundle
            return in_files(bundle, cluster=self.cluster)
        if not (self.kind and self.name):
            raise click.UsageError("name a KIND and a NAME, or files with -f")
        require_removable(self.kind)
        cluster = self.cluster if self.kind.cluster_filter else ""
        return [(self.kind, Selection(cluster=cluster, namespace=self.namespace, name=self.name))]


@click.command("delete")
@click.argument("kind", type=KindType(), required=False)
@click.argument("name", default="")
@click.option("-f", "--filename", "paths", metavar="PATH", multiple=True, help="Files or folders.")
@namespace_option
@cluster_option
@click.option("--reason", metavar="TEXT", default="", help="Why, for the record.")
@click.option("--ignore-not-found", is_flag=True, help="Do not fail if an object is missing.")
@click.option("--dry-run", is_flag=True, help="Delete nothing; show what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def command(  # noqa: PLR0913  one parameter an option
    *,
    connection: Connection,
    kind: Kind | None,
    name: str,
    paths: tuple[str, ...],
    namespace: str,
    cluster: str,
    reason: str,
    ignore_not_found: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete an object, or all that the files name.

    Everything is looked up before anything is deleted. An object that somebody changes in between
    stays.

    \b
      gatehouse delete quota compute -n default --cluster prod
      gatehouse delete -f old/ --cluster prod --dry-run
    """  # noqa: D301  \b is click's mark
    if paths:
        cluster = connection.require_cluster(cluster)
    named = _Named(
        kind=kind,
        name=name,
        paths=paths,
        namespace=namespace,
        cluster=cluster or connection.context.cluster,
    )
    wanted = named.wanted()
    with connection.open() as session:
        doomed = list(find_all(session, wanted, ignore_missing=ignore_not_found))
        if not dry_run and doomed and not yes:
            _confirm(session, doomed)
        for each in doomed:
            dependents = each.delete(session, reason=reason, dry_run=dry_run)
            click.echo(f"{each} {'would be' if dry_run else 'is'} deleted{_with(dependents)}")


def _confirm(session: PortalSession, doomed: Sequence[Doomed]) -> None:
    """Ask on the terminal; raises UsageError without one, and Abort for a no."""
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask at; say --yes, or try --dry-run")
    for each in doomed:
        dependents = each.delete(session, reason="", dry_run=True)
        click.echo(f"{each}{_with(dependents)}", err=True)
    click.confirm("Delete?", abort=True, err=True)


def _with(dependents: dict[str, int]) -> str:
    counts = ", ".join(f"{number} {name}" for name, number in dependents.items() if number)
    return f", with {counts}" if counts else ""
