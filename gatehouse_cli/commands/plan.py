"""``gatehouse plan``: what ``apply`` would do, in words; exit codes for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.output import OutputForm, output_option
from gatehouse_cli.plans.printed import exit_code, print_plans
from gatehouse_cli.plans.request import planned

if TYPE_CHECKING:
    from gatehouse_cli.plans.request import Request

DETAILED: Final = "--detailed-exitcode"
FAILED: Final = 1
CHANGED: Final = 2


class PlanCommand(click.Command):
    """With ``--detailed-exitcode`` an error is 1, as in terraform: 2 means changes there."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the options."""
        is_detailed = DETAILED in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            raise _ended(error, is_detailed=is_detailed) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Plan."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            raise _ended(error, is_detailed=ctx.params["detailed_exitcode"]) from error


def _ended(error: click.ClickException, *, is_detailed: bool) -> Exception:
    """The error itself, or after its message the end with the detailed exit code."""
    if not is_detailed:
        return error
    error.show()
    return click.exceptions.Exit(FAILED)


@click.command("plan", cls=PlanCommand)
@planned
@click.option(DETAILED, is_flag=True, help="Exit with 2 if there are changes, with 1 on an error.")
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@click.pass_context
def command(
    context: click.Context, *, request: Request, detailed_exitcode: bool, output: OutputForm
) -> None:
    """Show what apply would do, and store nothing.

    \b
      gatehouse plan -f policies/ --set platform --cluster prod
      gatehouse plan -f policies/ --set platform --cluster east --cluster west --prune

    Exit codes: 0 planned; 2 an error; 3 blocked by conflicts or by the brake of --prune. With
    --detailed-exitcode: 0 nothing to do; 1 an error; 2 changes; 3 blocked.
    """  # noqa: D301  \b is click's mark
    plans = print_plans(request.plans(dry_run=True), output)
    changed = CHANGED if detailed_exitcode else ExitCode.OK
    context.exit(exit_code(plans, changed=changed))
