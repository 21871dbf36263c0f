"""The report for people: a line for each failure and warning, then the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import ManifestTrial, Remark, TrialRun


def render(run: TrialRun) -> str:
    """Render the failures and warnings with their lines, in the order of the files."""
    lines: list[str] = []
    for trial in run.trials:
        lines += [_line(trial, each, "") for each in trial.failures]
        lines += [_line(trial, each, "warning: ") for each in trial.warnings]
    colour = "red" if run.failed else "green"
    return "\n".join([*lines, click.style(run.sentence, fg=colour)])


def _line(trial: ManifestTrial, remark: Remark, level: str) -> str:
    place = click.style(f"{remark.place}:", bold=True)
    level = click.style(level, fg="yellow") if level else ""
    return f"{place} {level}{trial.candidate.title}: {remark.message} ({remark.origin})"
