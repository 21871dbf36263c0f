"""The report for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gatehouse_cli.reports import render
from tests.gatehouse_cli.reports.conftest import FILE

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import TrialRun


def test_report_has_numbers_and_every_object(run: TrialRun) -> None:
    report = json.loads(render(run, "json"))
    assert report["summary"] == {"tested": 2, "passed": 1, "failed": 1, "skipped": {}}
    assert [(each["name"], each["verdict"], each["passed"]) for each in report["results"]] == [
        ("web", "deny", False),
        ("small", "allow", True),
    ]


def test_remark_has_its_place_and_cause(run: TrialRun) -> None:
    [failure] = json.loads(render(run, "json"))["results"][0]["failures"]
    assert failure == {
        "file": FILE,
        "line": 15,
        "column": 13,
        "field": "spec.template.spec.containers[0].resources.limits[cpu]",
        "reason": "MaxConstraint",
        "message": "maximum cpu usage per Container is 2, but limit is 3",
        "policy": "LimitRange limits",
    }
