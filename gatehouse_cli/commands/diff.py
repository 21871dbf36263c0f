"""``gatehouse diff``: the difference that ``apply`` would make, line by line as kubectl does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.plans.printed import exit_code
from gatehouse_cli.plans.request import planned
from gatehouse_cli.plans.words import way_on

if TYPE_CHECKING:
    from gatehouse_cli.plans.request import Request

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff")
@planned
@click.pass_context
def command(context: click.Context, *, request: Request) -> None:
    """Show what apply would change as a unified diff, and store nothing.

    Exit codes, as kubectl diff: 0 no difference; 1 differences; above 1 an error (2), or a plan
    that is blocked (3).
    """
    plans = []
    for plan in request.plans(dry_run=True):
        for planned_object in plan["objects"]:
            for line in planned_object["diff"].splitlines():
                click.echo(click.style(line, fg=_COLOURS.get(line[:1])))
        if words := way_on(plan):
            click.echo(words, err=True)
        plans.append(plan)
    context.exit(exit_code(plans, changed=ExitCode.FOUND))
