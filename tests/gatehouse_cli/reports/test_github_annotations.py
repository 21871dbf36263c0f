"""The report as GitHub's workflow commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatehouse_cli.reports import render
from tests.gatehouse_cli.manifests import LIMITS, deployment, policies, run_of

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import TrialRun


def test_failure_is_an_error_at_its_line(run: TrialRun) -> None:
    assert render(run, "github").splitlines()[0] == (
        "::error file=shop/100%25%2C a%3Ab.yaml,line=15,col=13,"
        "title=Deployment shop/web (LimitRange limits%2C MaxConstraint)::"
        "maximum cpu usage per Container is 2, but limit is 3"
    )


def test_policies_that_warn_are_warnings(run: TrialRun) -> None:
    levels = [line.split(" ", 1)[0] for line in render(run, "github").splitlines()]
    assert levels == ["::error", *["::warning"] * 4, "2"]


def test_line_breaks_stay_inside_one_command() -> None:
    text = deployment("3").replace("name: web", 'name: "a\\r\\n::error::b"', 1)
    first, *others = render(run_of(policies(LIMITS), text), "github").splitlines()
    assert "title=Deployment shop/a%0D%0A%3A%3Aerror%3A%3Ab (" in first
    assert not any(line.startswith("::") and "error::b" in line for line in others)
