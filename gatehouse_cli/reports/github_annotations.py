"""The report as GitHub's workflow commands, which show each remark beside its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import ManifestTrial, Remark, TrialRun


def render(run: TrialRun) -> str:
    """Render an error for each failure, a warning for each warning, and the numbers as text."""
    lines: list[str] = []
    for trial in run.trials:
        lines += [_command("error", trial, each) for each in trial.failures]
        lines += [_command("warning", trial, each) for each in trial.warnings]
    return "\n".join([*lines, _escaped(run.sentence)])


def _command(level: str, trial: ManifestTrial, remark: Remark) -> str:
    properties = {
        "file": remark.file,
        "line": str(remark.line),
        "col": str(remark.column),
        "title": f"{trial.candidate.title} ({remark.origin})",
    }
    text = ",".join(f"{name}={_escaped_property(value)}" for name, value in properties.items())
    return f"::{level} {text}::{_escaped(remark.message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
