"""Plans printed one after the other in the chosen form, and the exit code that they lead to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.output import OutputForm
from gatehouse_cli.plans.words import has_changes, plan_lines, way_on
from policies.manifests.render import render_documents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatehouse_cli.client.answers import SetPlanJson


def print_plans(plans: Iterable[SetPlanJson], output: OutputForm) -> list[SetPlanJson]:
    """Print plans as they come; as JSON they are one list, also of those before an error."""
    printed: list[SetPlanJson] = []
    try:
        for plan in plans:
            printed.append(plan)
            if output is OutputForm.TABLE:
                click.echo("\n".join(plan_lines(plan)))
    finally:
        _print_documents(printed, output)
        for plan in printed:
            if words := way_on(plan):
                click.echo(words, err=True)
    return printed


def _print_documents(plans: list[Any], output: OutputForm) -> None:
    if output is OutputForm.JSON:
        click.echo(json.dumps(plans, indent=2, ensure_ascii=False))
    elif output is OutputForm.YAML:
        click.echo(render_documents(plans), nl=False)


def exit_code(plans: Iterable[SetPlanJson], *, changed: int = ExitCode.OK) -> int:
    """HELD if a plan is blocked, ``changed`` if there are changes, else OK."""
    plans = list(plans)
    if any(plan["blocked"] for plan in plans):
        return ExitCode.HELD
    return changed if any(has_changes(plan) for plan in plans) else ExitCode.OK
