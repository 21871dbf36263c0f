"""Differences line by line, with the exit codes of ``kubectl diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli.plan_answers import ADDRESS, BLOCKED, plan, planned

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gatehouse_cli.fake_portal import FakePortal

DIFF = '--- a\n+++ b\n@@ -1 +1 @@\n-    pods: "10"\n+    pods: "20"\n'


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    file = tmp_path / "quota.yaml"
    file.write_text(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: a}\nspec: {hard: {pods: 1}}\n",
        "utf-8",
    )
    return ["diff", "-f", str(file), "--set", "platform", "--cluster", "prod"]


def test_difference_is_printed(
    portal: FakePortal, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = plan(planned(diff=DIFF), planned("unchanged", "same"))
    portal.answer(ADDRESS, answer, method="POST")
    assert run(words) == ExitCode.FOUND
    assert capsys.readouterr().out == DIFF
    assert portal.asked[0].query == {"dryRun": "All"}


def test_no_difference_is_silence(
    portal: FakePortal, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(ADDRESS, plan(planned("unchanged")), method="POST")
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().out == ""


def test_blocked_plan_and_errors_are_above_one(portal: FakePortal, words: list[str]) -> None:
    portal.answer(ADDRESS, plan(planned("conflict"), blocked=[BLOCKED]), method="POST")
    assert run(words) == ExitCode.HELD
    assert run([*words, "--prnue"]) == ExitCode.ERROR
