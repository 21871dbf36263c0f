"""``gatehouse changes``: the group and its subcommands. What a change is, the portal knows."""

from __future__ import annotations

from typing import Final

import click

from gatehouse_cli.commands.changes import replay, rollout, shown, steps

COMMANDS: Final = (
    *(shown.list_changes, shown.show),
    *(steps.submit, steps.withdraw, steps.approve, steps.request_changes, steps.comment),
    replay.replay,
    *(steps.publish, steps.publish_now, steps.review, steps.abandon, steps.revert),
    *(rollout.plan, rollout.start, rollout.advance, rollout.stop, rollout.resume),
)


class ChangesGroup(click.Group):
    """Lists its subcommands in the order in which a change meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name them."""
        del ctx
        return list(self.commands)


@click.group("changes", cls=ChangesGroup)
def command() -> None:
    r"""Review, publish and roll out proposed writes of policies.

    ID is the number of a change. gatehouse apply --as-change fills one from files.

    \b
      gatehouse changes list --state in_review
      gatehouse changes replay 12
      gatehouse changes approve 12 --note "fits the nodes"

    Exit codes: 0 done; 1 a replay found requests that would newly be denied; 2 an error; 3 held,
    nothing was written: approvals are missing, the content is another, an object was written
    since, or the change is in another state.
    """


for _each in COMMANDS:
    command.add_command(_each)
