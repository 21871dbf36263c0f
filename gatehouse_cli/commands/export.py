"""``gatehouse export``: a cluster's policies as manifests that kubectl and ``apply`` read."""

from __future__ import annotations

import click

from gatehouse_cli.client import operations
from gatehouse_cli.connection import Connection, cluster_option, connected
from gatehouse_cli.objects.kinds import KINDS, Kind, KindType


@click.command("export")
@cluster_option
@click.option("--kind", "kinds", type=KindType(), multiple=True, help="Only these; repeatable.")
@click.option(
    "-n", "--namespace", "namespaces", metavar="NAME", multiple=True, help="Only these; repeatable."
)
@connected
def command(
    *, connection: Connection, cluster: str, kinds: tuple[Kind, ...], namespaces: tuple[str, ...]
) -> None:
    """Print the policies of a cluster as YAML, as far as you may see them."""
    for kind in kinds:
        if not kind.manifest_kind:
            known = ", ".join(each.plural for each in KINDS if each.manifest_kind)
            raise click.UsageError(f"{kind.plural} are not exported; known: {known}")
    query = {"kind": [kind.manifest_kind for kind in kinds], "namespace": list(namespaces)}
    with connection.open() as session:
        text = session.call(
            operations.CLUSTERS_EXPORT_RETRIEVE,
            names={"name": connection.require_cluster(cluster)},
            query={name: values for name, values in query.items() if values},
        )
    click.echo(text, nl=False)
