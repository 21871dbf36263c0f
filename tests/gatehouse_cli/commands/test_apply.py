"""Applying files: what is sent, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli.plan_answers import ADDRESS, BLOCKED, plan, planned

if TYPE_CHECKING:
    import pytest

    from tests.gatehouse_cli.fake_portal import FakePortal

QUOTA = b"""
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute, namespace: team}
spec: {hard: {pods: "10"}}
"""


def apply(monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    """Apply from standard input, as from kustomize."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUOTA)))
    return run(["apply", "-f", "-", "--set", "platform", "--cluster", "prod", *more])


def test_done_is_said(
    portal: FakePortal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = plan(planned("create"), applied=True, dryRun=False)
    portal.answer(ADDRESS, answer, method="POST")
    assert apply(monkeypatch) == ExitCode.OK
    assert portal.asked[0].body["documents"] == QUOTA.decode()
    assert portal.asked[0].query == {}
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "applied: 1 created, 0 changed, 0 deleted, 0 unchanged"


def test_dry_run_is_asked_for(portal: FakePortal, monkeypatch: pytest.MonkeyPatch) -> None:
    portal.answer(ADDRESS, plan(planned("create")), method="POST")
    assert apply(monkeypatch, "--dry-run") == ExitCode.OK
    assert portal.asked[0].query == {"dryRun": "All"}


def test_the_writes_of_all_clusters_are_proposed_as_one_change(
    portal: FakePortal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for cluster in ("prod", "test"):
        answer = plan(planned("create"), cluster=cluster, change=12, dryRun=False)
        portal.answer(ADDRESS, answer, method="POST")
    more = ("--cluster", "test", "--as-change", "Lower it", "--reason", "why")
    assert apply(monkeypatch, *more) == ExitCode.OK
    first, second = (asked.body for asked in portal.asked)
    assert (first["changeTitle"], first["reason"], "change" in first) == ("Lower it", "why", False)
    assert (second["change"], "changeTitle" in second) == (12, False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "change #12: 1 to create, 0 to change, 0 to delete, 0 unchanged"


def test_blocked_cluster_does_not_stop_the_others(
    portal: FakePortal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(ADDRESS, plan(planned("conflict"), blocked=[BLOCKED]), method="POST")
    portal.answer(ADDRESS, plan(planned(), cluster="test", applied=True), method="POST")
    assert apply(monkeypatch, "--cluster", "test") == ExitCode.HELD
    printed = capsys.readouterr()
    assert "applied: 0 created, 1 changed" in printed.out
    assert "nothing was written in prod" in printed.err


def test_json_tells_what_was_done_before_an_error(
    portal: FakePortal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(ADDRESS, plan(planned(), applied=True), method="POST")
    portal.refuse(ADDRESS, 422, method="POST", detail="there is no cluster tset")
    assert apply(monkeypatch, "--cluster", "tset", "-o", "json") == ExitCode.ERROR
    printed = capsys.readouterr()
    assert [each["cluster"] for each in json.loads(printed.out)] == ["prod"]
    assert "there is no cluster tset (422)" in printed.err
