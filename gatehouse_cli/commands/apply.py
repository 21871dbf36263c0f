"""``gatehouse apply``: the policies of files stored in clusters, each whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gatehouse_cli.output import OutputForm, output_option
from gatehouse_cli.plans.printed import exit_code, print_plans
from gatehouse_cli.plans.request import planned

if TYPE_CHECKING:
    from gatehouse_cli.plans.request import Request


@click.command("apply")
@planned
@click.option("--dry-run", is_flag=True, help="Store nothing, like plan.")
@click.option(
    "--as-change",
    "title",
    metavar="TITLE",
    default="",
    help="Store nothing, but put the writes into a new change of this title.",
)
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@click.pass_context
def command(
    context: click.Context, *, request: Request, dry_run: bool, title: str, output: OutputForm
) -> None:
    """Make the policies of a set equal to those in files.

    Each cluster is changed whole or not at all; a blocked one leaves the others as they are. A
    field that somebody else manages blocks it, unless --force takes the field over. --as-change
    proposes the writes of all clusters as one change, which is published in the portal.

    \b
      gatehouse apply -f policies/ --set platform --cluster prod --prune
      kustomize build . | gatehouse apply -f - --set platform --cluster prod
      gatehouse apply -f policies/ --set platform --cluster prod --as-change "Lower the maximum"

    Exit codes: 0 done, also if nothing had to change; 2 an error; 3 blocked by conflicts or by the
    brake of --prune.
    """  # noqa: D301  \b is click's mark
    plans = print_plans(replace(request, change_title=title).plans(dry_run=dry_run), output)
    context.exit(exit_code(plans))
