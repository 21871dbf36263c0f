"""``gatehouse completion``: the script that completes words in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gatehouse_cli.exit_codes import CliError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    r"""Print the script that completes words in a shell.

    \b
      source <(gatehouse completion bash)
      gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise CliError(f"there is no completion for {shell}")
    root = context.find_root().command
    click.echo(completion_class(root, {}, "gatehouse", "_GATEHOUSE_COMPLETE").source())
