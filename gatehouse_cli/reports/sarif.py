"""The report as SARIF 2.1.0: a rule for each reason, a result for each failure and warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from engine.decision import Reason
from gatehouse_cli import __version__
from gatehouse_cli.trials.trial import UNMET

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import ManifestTrial, Remark, TrialRun

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
DESCRIPTIONS: Final[dict[str, str]] = {
    Reason.MIN_CONSTRAINT: "An amount is below the minimum of a LimitRange.",
    Reason.MAX_CONSTRAINT: "An amount is above the maximum of a LimitRange.",
    Reason.RATIO_CONSTRAINT: "The ratio of limit and request is above that of a LimitRange.",
    Reason.REJECTED_BY_RULE: "A rule of a MetadataPolicy rejects the object.",
    Reason.ANNOTATIONS_TOO_LONG: "The annotations are longer than Kubernetes allows.",
    Reason.MUST_SPECIFY: "A container does not specify a resource that a quota limits.",
    Reason.STATUS_UNKNOWN: "A quota has no used amount yet for a resource that it limits.",
    Reason.NEGATIVE_USAGE: "The object would use a negative amount.",
    Reason.NO_PREVIOUS_USAGE: "An update came without the old object.",
    Reason.INSUFFICIENT_QUOTA: "A limited resource has no quota that tracks it.",
    Reason.UNCOVERED_SCOPE: "A limited scope has no quota that covers it.",
    Reason.EXCEEDED_QUOTA: "A quota has no room for the object.",
    Reason.TOO_MANY_UNCONFIRMED: "The namespace has too many objects that were not seen yet.",
    Reason.NAMESPACE_NOT_KNOWN_YET: "The namespace may still get policies: try again.",
    Reason.REVIEW_TOO_LONG: "Judging the object takes longer than a review may.",
    Reason.BAD_SCOPE_SELECTOR: "The scope selector of a quota cannot be evaluated.",
    Reason.INVALID_OBJECT: "The API server's own validation refuses the object.",
    Reason.UNREADABLE_OBJECT: "The object cannot be decoded.",
    Reason.CANARY: "A canary is always refused.",
    UNMET: "The answer is not the one that a kept test or the object's annotations expect.",
}


def render(run: TrialRun) -> str:
    """Render one log with one run."""
    levelled = [
        (trial, remark, level)
        for trial in run.trials
        for remarks, level in ((trial.failures, "error"), (trial.warnings, "warning"))
        for remark in remarks
    ]
    reasons = sorted({remark.reason for _, remark, _ in levelled})
    driver = {
        "name": "gatehouse",
        "version": __version__,
        "rules": [_rule(reason) for reason in reasons],
    }
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(trial, remark, level, reasons.index(remark.reason))
                    for trial, remark, level in levelled
                ],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _rule(reason: str) -> dict[str, Any]:
    return {"id": reason, "shortDescription": {"text": DESCRIPTIONS[reason]}}


def _result(trial: ManifestTrial, remark: Remark, level: str, rule: int) -> dict[str, Any]:
    title = trial.candidate.title
    physical = {
        "artifactLocation": {"uri": _uri(remark.file)},
        "region": {"startLine": remark.line, "startColumn": remark.column},
    }
    logical = {"fullyQualifiedName": f"{title} {remark.field}".rstrip(), "kind": "object"}
    return {
        "ruleId": remark.reason,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": f"{title}: {remark.message} ({remark.origin})"},
        "locations": [{"physicalLocation": physical, "logicalLocations": [logical]}],
    }


def _uri(file: str) -> str:
    """Write a path as a URI, relative to the folder of the run where it lies below it."""
    path = Path(file)
    if not path.is_absolute():
        return quote(path.as_posix())
    here = Path.cwd()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()
