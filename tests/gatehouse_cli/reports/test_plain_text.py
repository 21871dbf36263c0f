"""The report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatehouse_cli.reports import render

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import TrialRun


def test_each_line_begins_with_its_place(run: TrialRun) -> None:
    first, *others = click.unstyle(render(run, "text")).splitlines()
    assert first == (
        "shop/100%, a:b.yaml:15:13: Deployment shop/web: maximum cpu usage per Container is 2, "
        "but limit is 3 (LimitRange limits, MaxConstraint)"
    )
    assert [": warning: Deployment shop/" in line for line in others] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_last_line_has_the_numbers(run: TrialRun) -> None:
    last = click.unstyle(render(run, "text")).splitlines()[-1]
    assert last == "2 objects tested: 1 passed, 1 failed"
