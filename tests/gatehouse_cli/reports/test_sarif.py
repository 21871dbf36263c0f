"""The report as SARIF 2.1.0, in the properties and values that its schema allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from engine.decision import Reason
from gatehouse_cli.reports import render
from gatehouse_cli.reports.sarif import DESCRIPTIONS
from gatehouse_cli.trials.trial import UNMET
from tests.gatehouse_cli.manifests import LIMITS, deployment, policies, run_of

if TYPE_CHECKING:
    from pathlib import Path

    from gatehouse_cli.trials.trial import TrialRun


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def many(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = closed("text", text=TEXT)
URI = {"type": "string", "format": "uri-reference", "pattern": r"^[!#-;=?-Z_a-z~%\[\]@]+$"}
NUMBER = {"type": "integer", "minimum": 1}
LOCATION = closed(
    physicalLocation=closed(
        "artifactLocation",
        artifactLocation=closed(uri=URI),
        region=closed(startLine=NUMBER, startColumn=NUMBER),
    ),
    logicalLocations=many(closed(fullyQualifiedName=TEXT, kind=TEXT)),
)
RESULT = closed(
    "message",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations=many(LOCATION),
)
DRIVER = closed(
    "name", name=TEXT, version=TEXT, rules=many(closed("id", id=TEXT, shortDescription=MESSAGE))
)
RUN = closed(
    "tool",
    tool=closed("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=many(RESULT),
)
SCHEMA = closed(
    "version", "runs", **{"$schema": URI, "version": {"const": "2.1.0"}, "runs": many(RUN)}
)


def report(run: TrialRun) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(render(run, "sarif"))
    jsonschema.validate(log, SCHEMA)
    found: dict[str, Any] = log["runs"][0]
    return found


def test_result_points_to_its_field(run: TrialRun) -> None:
    first = report(run)["results"][0]
    [location] = first["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 15, "startColumn": 13}
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "shop/100%25%2C%20a%3Ab.yaml"
    assert first["level"] == "error"


def test_every_result_has_its_rule(run: TrialRun) -> None:
    found = report(run)
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert rules == ["MaxConstraint", "RejectedByRule"]
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in found["results"])


def test_policies_that_warn_are_warnings(run: TrialRun) -> None:
    levels = {each["ruleId"]: each["level"] for each in report(run)["results"]}
    assert levels == {"MaxConstraint": "error", "RejectedByRule": "warning"}


def test_run_without_failures_has_no_result() -> None:
    assert report(run_of(policies(LIMITS), deployment()))["results"] == []


def test_file_below_the_folder_of_the_run_is_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uris = []
    for file in (tmp_path / "a.yaml", tmp_path.parent / "b.yaml"):
        [result] = report(run_of(policies(LIMITS), deployment("3"), file=str(file)))["results"]
        uris.append(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
    assert uris == ["a.yaml", (tmp_path.parent / "b.yaml").as_uri()]


@pytest.mark.parametrize("reason", [*Reason, UNMET])
def test_every_reason_has_a_description(reason: str) -> None:
    assert DESCRIPTIONS[reason].endswith(".")
