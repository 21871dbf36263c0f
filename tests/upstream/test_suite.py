"""The report of Kubernetes' own tests is read whole: nothing that failed counts as absent."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.upstream import suite

if TYPE_CHECKING:
    from pathlib import Path

PLACE = ["[sig-scheduling] LimitRange"]


def spec(
    leaf: str, state: str = "passed", kind: str = "It", message: str = "", seconds: float = 1
) -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": PLACE if kind == "It" else None,
        "LeafNodeType": kind,
        "LeafNodeText": leaf,
        "State": state,
        "RunTime": seconds * 1e9,
        **({"Failure": {"Message": message}} if message else {}),
    }


def report(*specs: dict[str, Any]) -> str:
    return json.dumps([{"SpecReports": list(specs)}, {"SpecReports": None}])


def test_tests_that_ran_are_read_with_their_full_names() -> None:
    found = suite.read(report(spec("slow", seconds=2), spec("quick"), spec("left out", "skipped")))
    assert [outcome.name for outcome in found] == [f"{PLACE[0]} quick", f"{PLACE[0]} slow"]
    assert all(outcome.passed for outcome in found)


@pytest.mark.parametrize("state", ["failed", "panicked", "interrupted", "timedout", "aborted"])
def test_no_other_state_is_a_pass(state: str) -> None:
    (found,) = suite.read(report(spec("odd", state, message="why")))
    assert (found.passed, found.message) == (False, "why")


def test_steps_around_the_tests_count_only_if_they_fail() -> None:
    steps = [spec("", "passed", "BeforeSuite"), spec("", "failed", "AfterSuite", "why")]
    assert [outcome.name for outcome in suite.read(report(*steps))] == ["AfterSuite"]


def program(folder: Path, script: str) -> Path:
    """A program in place of the tests."""
    made = folder / "e2e.test"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o700)
    return made


def test_chosen_tests_are_focused_by_their_exact_names(tmp_path: Path) -> None:
    made = program(tmp_path, f"printf '%s\\n' \"$@\"; echo '{report(spec('a'))}' > report.json")
    names = ["[sig-scheduling] LimitRange a. b", "[sig-scheduling] LimitRange c"]
    assert suite.run(made, tmp_path / "kubeconfig", tmp_path, names)
    words = (tmp_path / "suite.log").read_text().splitlines()
    option = "--ginkgo.focus="
    patterns = [word.removeprefix(option) for word in words if word.startswith(option)]
    for pattern, name in zip(patterns, names, strict=True):
        assert re.fullmatch(pattern, name)
    assert not re.search(patterns[0], names[0].replace(".", "-"))


def test_run_without_a_report_shows_the_end_of_its_log(tmp_path: Path) -> None:
    made = program(tmp_path, "echo no cluster here")
    with pytest.raises(AssertionError, match="no cluster here"):
        suite.run(made, tmp_path / "kubeconfig", tmp_path)


def test_quickest_are_ten_of_the_two_suites() -> None:
    names = suite.quickest()
    assert len(set(names)) == len(names) == 10
    assert [name for name in names if not any(re.match(each, name) for each in suite.SUITES)] == []
