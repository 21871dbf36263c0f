"""``gatehouse test`` with kept tests among the policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gatehouse_cli import reports
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli.manifests import LIMITS, THREE_PODS, deployment, documents

if TYPE_CHECKING:
    from pathlib import Path

KEPT = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: PolicyTest
metadata: {name: NAME, namespace: shop}
spec:
  expect: EXPECT
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      containers:
      - {name: web, image: nginx, resources: {limits: {cpu: "3"}}}
"""
DENIED = "{verdict: deny, reasons: [MaxConstraint]}"


def kept(expect: str = DENIED, *, name: str = "too-large", more: str = "") -> str:
    return KEPT.replace("EXPECT", expect).replace("NAME", name) + more


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def make(*texts: str, name: str = "policies.yaml") -> str:
        (tmp_path / name).write_text(documents(*texts), encoding="utf-8")
        return str(tmp_path / name)

    return make


def test_kept_tests_are_enough(write: Any, capsys: Any) -> None:
    assert run(["test", "-f", write(LIMITS, kept())]) == ExitCode.OK
    assert "1 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("form", reports.FORMS)
def test_a_red_test_is_in_every_report(write: Any, capsys: Any, form: str) -> None:
    path = write(LIMITS, kept("{verdict: allow}", name="small"), kept())
    assert run(["test", "-f", path, "--report", form]) == ExitCode.FOUND
    out = capsys.readouterr().out
    assert "ExpectationNotMet" in out
    assert "PolicyTest shop/small" in out or form == "json"


def test_a_report_points_at_the_expectation(write: Any, capsys: Any) -> None:
    path = write(LIMITS, kept("{verdict: deny, reasons: [MinConstraint]}"))
    run(["test", "-f", path, "--report", "json"])
    [result] = json.loads(capsys.readouterr().out)["results"]
    [failure] = result["failures"]
    assert (result["expected"], result["verdict"], result["passed"]) == ("deny", "deny", False)
    assert failure["field"] == "spec.expect.reasons"
    assert (failure["line"], failure["column"]) == (13, 27)
    [refusal] = result["refusals"]
    assert refusal["field"] == "spec.object.spec.containers[0].resources.limits[cpu]"


def test_quotas_are_empty_and_no_test_uses_them_up(write: Any) -> None:
    tests = [kept("{verdict: allow}", name=f"n{number}") for number in range(5)]
    assert run(["test", "-f", write(THREE_PODS, *tests)]) == ExitCode.OK
    full = kept("{verdict: deny, reasons: [ExceededQuota]}", more='  used: {pods: {pods: "3"}}\n')
    assert run(["test", "-f", write(THREE_PODS, full)]) == ExitCode.OK


def test_manifests_are_tested_beside_them(write: Any, capsys: Any) -> None:
    policies, apps = write(LIMITS, kept()), write(deployment(), kept(), name="apps.yaml")
    assert run(["test", "-f", policies, apps]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "2 objects tested: 2 passed" in out
    assert "1 skipped (1 PolicyTest)" in out, "a test among the manifests is none of them"


def test_without_manifests_and_tests_there_is_nothing_to_do(write: Any) -> None:
    assert run(["test", "-f", write(LIMITS)]) == ExitCode.ERROR


@pytest.mark.parametrize(
    "broken",
    [
        kept("{verdict: maybe}"),
        kept("{verdict: deny, reasons: [Nothing]}"),
        kept().replace("kind: Pod", "kind: Node"),
        kept().replace('cpu: "3"', "cpu: 0.5"),
        kept().replace("expect:", "expekt:"),
    ],
)
def test_what_is_no_test_stops_the_command(write: Any, broken: str, capsys: Any) -> None:
    assert run(["test", "-f", write(LIMITS, broken)]) == ExitCode.ERROR
    assert "policies.yaml:" in capsys.readouterr().err
