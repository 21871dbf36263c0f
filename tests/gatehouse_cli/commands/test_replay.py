"""A replay is requested of files, waited for, told by owner, and ends with its exit code."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from gatehouse_cli.objects import replays

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gatehouse_cli.fake_portal import FakePortal

UID = "00000000-0000-4000-8000-000000000000"
LIST = "/api/v1/replays/"
ONE = f"{LIST}{UID}/"
POLICY = """\
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: shop}
spec: {limits: [{type: Container, max: {cpu: 500m}}]}
"""
NOTHING = {"number": 0, "oldest": "", "newest": ""}
DENIED, ALLOWED = "0000000000000001", "0000000000000009"


def changed(*groups: dict[str, Any]) -> dict[str, Any]:
    number = sum(group["number"] for group in groups)
    by_owner = {"groups": list(groups), "groups_left_out": 0, "decisions_left_out": 0}
    ends = {"oldest": groups[0]["oldest"], "newest": groups[-1]["newest"]} if groups else {}
    return {**NOTHING, **ends, "number": number, "by": {"owner": by_owner}}


def group(key: str, number: int, decision: str) -> dict[str, Any]:
    ends = {"oldest": decision, "newest": decision}
    return {"key": key, "number": number, "days": {}, "text": "too much cpu", **ends}


def report(**changes: Any) -> dict[str, Any]:
    kinds = ("to_denied", "to_allowed", "patch", "new_warning", "vanished_warning")
    return {
        "verdicts": {
            "decisions": 4_127,
            "replayed": 4_120,
            "judged": 12,
            "record": {"repeated": 4_000, "of_the_moment": NOTHING, "differing": NOTHING},
            "not_replayed": {"cut": {**NOTHING, "number": 7, "newest": DENIED}},
            "changes": {**{kind: changed() for kind in kinds}, **changes},
        },
        "quotas": [],
        "quotas_left_out": 0,
    }


def state(name: str, **members: Any) -> dict[str, Any]:
    new = {"uid": UID, "state": name, "done": 0, "total": 0, "problem": "", "report": None}
    return {**new, **members}


@pytest.fixture
def proposed(tmp_path: Path) -> str:
    (tmp_path / "policy.yaml").write_text(POLICY, "utf-8")
    return str(tmp_path)


@pytest.fixture
def requested(portal: FakePortal, monkeypatch: pytest.MonkeyPatch) -> FakePortal:
    """A portal that takes a replay; nobody waits between two looks."""
    monkeypatch.setattr(replays, "PAUSE", 0)
    portal.answer(LIST, state("queued"), method="POST", status=202)
    return portal


def test_flips_are_told_by_owner(
    requested: FakePortal, proposed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flips = {
        "to_denied": changed(group("shop/Deployment web", 31, DENIED)),
        "to_allowed": changed(group("shop/Deployment web", 1, ALLOWED)),
        "patch": changed(group("shop/Job x", 5, ALLOWED)),
    }
    for each in (
        state("queued"),
        state("running", total=4_127),
        state("running", total=4_127, done=250),
        state("done", total=4_127, done=4_127, report=report(**flips)),
    ):
        requested.answer(ONE, each)
    assert run(["replay", "-f", proposed, "--cluster", "prod"]) == ExitCode.FOUND
    told = capsys.readouterr().out
    (owner,) = [line for line in told.splitlines() if "Deployment web" in line]
    cells = [cell.strip() for cell in owner.split("   ") if cell.strip()]
    assert cells == ["shop/Deployment web", "31", "1", DENIED, ALLOWED, "too much cpu"]
    assert "4,127 decisions, 4,120 replayed" in told
    assert "7 cut" in told
    assert "5 patches differ" in told


def test_what_is_sent_names_the_proposal_and_the_time(requested: FakePortal, proposed: str) -> None:
    requested.answer(ONE, state("done", report=report()))
    words = ["replay", "-f", proposed, "--cluster", "prod", "--since", "12h", "-n", "shop"]
    words += ["--delete", "ResourceQuota/shop/old", "--query", "user:ada"]
    assert run(words) == ExitCode.OK
    sent = requested.asked[0].body
    assert (sent["cluster"], sent["namespaces"], sent["query"]) == ("prod", ["shop"], "user:ada")
    assert sent["deletions"] == [{"kind": "ResourceQuota", "namespace": "shop", "name": "old"}]
    assert "kind: LimitRange" in sent["manifests"]
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(sent["since"])
    assert dt.timedelta(hours=12) <= age < dt.timedelta(hours=13)


def test_a_deletion_needs_no_files(requested: FakePortal) -> None:
    requested.answer(ONE, state("done", report=report()))
    words = ["replay", "--delete", "LimitRange/shop/old", "--cluster", "prod"]
    assert run(words) == ExitCode.OK
    assert "manifests" not in requested.asked[0].body


def test_the_whole_result_is_json(
    requested: FakePortal, proposed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    requested.answer(ONE, state("done", report=report()))
    assert run(["replay", "-f", proposed, "--cluster", "prod", "-o", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["report"] == report()


def test_newly_allowed_requests_alone_are_no_finding(requested: FakePortal, proposed: str) -> None:
    found = report(to_allowed=changed(group("shop/Job x", 5, ALLOWED)))
    requested.answer(ONE, state("done", report=found))
    assert run(["replay", "-f", proposed, "--cluster", "prod"]) == ExitCode.OK


@pytest.mark.parametrize("ended", ["failed", "cancelled"])
def test_a_replay_that_came_to_nothing_is_an_error(
    requested: FakePortal, proposed: str, capsys: pytest.CaptureFixture[str], ended: str
) -> None:
    requested.answer(ONE, state(ended, problem="too many days"))
    assert run(["replay", "-f", proposed, "--cluster", "prod"]) == ExitCode.ERROR
    assert "too many days" in capsys.readouterr().err


def test_an_interrupt_cancels_it(
    requested: FakePortal, proposed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested.answer(ONE, state("running", total=5))
    requested.answer(f"{ONE}cancel/", state("cancelled"), method="POST")

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replays.time, "sleep", interrupted)
    assert run(["replay", "-f", proposed, "--cluster", "prod"]) == ExitCode.INTERRUPTED
    assert requested.asked[-1].path == f"{ONE}cancel/"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--delete", "LimitRange"],
        ["--delete", "LimitRange//x"],
        ["--delete", "LimitRange/shop/x", "--since", "soon"],
    ],
)
def test_wrong_usage_asks_nothing(portal: FakePortal, words: list[str]) -> None:
    assert run(["replay", "--cluster", "prod", *words]) == ExitCode.ERROR
    assert portal.asked == []


def test_a_quota_over_time_is_told(
    requested: FakePortal, proposed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wait = {"name": "pods web-1", "decision": DENIED, "begin": "2026-09-21T00:02:00Z"}
    quota = {
        "hard": {"pods": "2"},
        "unknown_names": [],
        "peak": {"pods": "2"},
        "waits": {"admitted": 1, "gone": 0, "waiting": 0},
        "longest_waits": [{**wait, "end": wait["begin"], "seconds": 90, "ended": "admitted"}],
    }
    quotas = [
        {"namespace": "shop", "quota": "pods", "state": "replayed", "report": quota},
        {"namespace": "shop", "quota": "more", "state": "new", "report": None},
    ]
    requested.answer(ONE, state("done", report={**report(), "quotas": quotas}))
    assert run(["replay", "-f", proposed, "--cluster", "prod"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "shop/pods: highest pods 2 of 2; 1 requests would have waited" in told
    assert "pods web-1: 90 s" in told
    assert "shop/more: new" in told
