"""The group ``gatehouse``: its options, subcommands loaded when called, errors to exit codes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from gatehouse_cli import __version__
from gatehouse_cli.exit_codes import CliError, ExitCode, wanted_colour

COMMANDS: Final = (
    "test",
    "login",
    "get",
    "describe",
    "plan",
    "diff",
    "apply",
    "delete",
    "export",
    "compare",
    "replay",
    "changes",
    "why",
    "completion",
)
"""Each is the ``command`` of the module of its name in ``gatehouse_cli.commands``."""
PLUGIN: Final = "kubectl-gatehouse"


class CommandGroup(click.Group):
    """Loads only the module of the called subcommand: no start waits for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Name the subcommands, in the order in which help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one subcommand; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gatehouse_cli.commands.{cmd_name}")
        found: click.Command = module.command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; for an unknown one, the error names those close to it."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx) from error


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="gatehouse")
@click.option("--traceback", is_flag=True, hidden=True, help="Show where our own error came from.")
def gatehouse(*, traceback: bool) -> None:
    """Test, plan and apply the policies of Kubernetes clusters.

    Exit codes of all commands: 0 done, nothing found; 1 differences or refusals were found;
    2 an error: wrong usage, unreadable files, no answer; 3 held, a person must decide.
    """


def main() -> NoReturn:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:], program=Path(sys.argv[0]).name))


def run(arguments: list[str], *, program: str = "gatehouse") -> int:
    """Run one command line; prints its errors and returns its exit code."""
    shown_name = PLUGIN.replace("-", " ") if program.startswith(PLUGIN) else "gatehouse"
    try:
        result = gatehouse.main(
            arguments,
            prog_name=shown_name,
            complete_var="_GATEHOUSE_COMPLETE",
            standalone_mode=False,
            color=wanted_colour(),
        )
    except click.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.ERROR
    except Exception as error:
        if "--traceback" in arguments[:1]:
            raise
        CliError(
            f"an error of our own: {type(error).__name__}: {error}"
            " (gatehouse --traceback … shows where)"
        ).show()
        return ExitCode.ERROR
    return result if isinstance(result, int) else ExitCode.OK
