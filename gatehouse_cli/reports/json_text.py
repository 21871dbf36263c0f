"""The report for scripts: each trial with its verdict and remarks, and the numbers, as JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import ManifestTrial, TrialRun


def render(run: TrialRun) -> str:
    """Render one JSON object."""
    report = {
        "summary": {
            "tested": len(run.trials),
            "passed": len(run.trials) - len(run.failed),
            "failed": len(run.failed),
            "skipped": dict(run.skipped),
        },
        "results": [_result(trial) for trial in run.trials],
    }
    return json.dumps(report, indent=2, ensure_ascii=False)


def _result(trial: ManifestTrial) -> dict[str, Any]:
    item, expected = trial.candidate.item, trial.candidate.expected
    line, column = item.document.place_of(item.path)
    return {
        "file": item.document.source,
        "line": line,
        "column": column,
        "kind": item.kind,
        "namespace": item.namespace,
        "name": item.name,
        "verdict": "deny" if trial.is_denied else "allow",
        "expected": "deny" if expected and expected.is_denial else "allow",
        "passed": trial.passes,
        "refusals": [dataclasses.asdict(each) for each in trial.refusals],
        "warnings": [dataclasses.asdict(each) for each in trial.warnings],
        "failures": [dataclasses.asdict(each) for each in trial.failures],
    }
