"""``gatehouse export``: a cluster's policies as manifests that kubectl and ``apply`` read."""

from __future__ import annotations

from typing import Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.connection import Connection, cluster_option, connected
from gatehouse_cli.objects.kinds import KINDS, Kind, KindType
from gatehouse_cli.objects.lookup import Selection, at_option, listed
from gatehouse_cli.objects.manifest import manifest_of
from policies.manifests.render import render_documents

PAST: Final = ("namespaces", "priorityclasses", "limitranges", "metadatapolicies", "resourcequotas")
"""The kinds that are exported as of an instant, in this order."""


@click.command("export")
@cluster_option
@click.option("--kind", "kinds", type=KindType(), multiple=True, help="Only these; repeatable.")
@click.option(
    "-n", "--namespace", "namespaces", metavar="NAME", multiple=True, help="Only these; repeatable."
)
@at_option
@connected
def command(
    *,
    connection: Connection,
    cluster: str,
    kinds: tuple[Kind, ...],
    namespaces: tuple[str, ...],
    at: str,
) -> None:
    """Print the policies of a cluster as YAML, as far as you may see them.

    With --at, as they were then; kept tests are left out, of which no past is known.
    """
    for kind in kinds:
        if not kind.manifest_kind:
            known = ", ".join(each.plural for each in KINDS if each.manifest_kind)
            raise click.UsageError(f"{kind.plural} are not exported; known: {known}")
    if at:
        _print_past(connection, connection.require_cluster(cluster), kinds, namespaces, at=at)
        return
    query = {"kind": [kind.manifest_kind for kind in kinds], "namespace": list(namespaces)}
    with connection.open() as session:
        text = session.call(
            operations.CLUSTERS_EXPORT_RETRIEVE,
            names={"name": connection.require_cluster(cluster)},
            query={name: values for name, values in query.items() if values},
        )
    click.echo(text, nl=False)


def _print_past(
    connection: Connection,
    cluster: str,
    kinds: tuple[Kind, ...],
    namespaces: tuple[str, ...],
    *,
    at: str,
) -> None:
    """Print the same from the lists of an instant."""
    for kind in kinds:
        if kind.plural not in PAST:
            raise click.UsageError(f"{kind.plural} are not exported with --at")
    by_plural = {kind.plural: kind for kind in KINDS}
    chosen = [by_plural[each] for each in PAST if not kinds or by_plural[each] in kinds]
    found = []
    with connection.open() as session:
        for kind in chosen:
            is_place = kind.manifest_kind == "Namespace"
            if namespaces and not (kind.is_namespaced or is_place):
                continue
            for named in namespaces or ("",):
                name, place = (named, "") if is_place else ("", named)
                selection = Selection(cluster=cluster, namespace=place, name=name, at=at)
                found += [manifest_of(kind, each) for each in listed(session, kind, selection)]
    click.echo(render_documents(found), nl=False)
