"""A change against a portal in this process: from files, reviewed, rolled out, reverted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from admission import tasks
from admission.models import Replay
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from gatehouse_cli.objects import replays
from policies.models import ApiToken, ChangeSet
from policies.services import changes
from tests import factories, people
from tests.approvals import rule
from tests.changes import cpu, limit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django.live_server_helper import LiveServer

LIMITS = """apiVersion: v1
kind: LimitRange
metadata: {name: lr, namespace: team}
spec: {limits: [{type: Container, max: {cpu: "2"}}]}
"""
PLAN = """
waves:
- stages: [{mode: enforce, dwell: 600}]
on_trip: revert
"""


@pytest.fixture
def act(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Act from now on as a person with a role everywhere."""
    tokens: dict[str, str] = {}
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)

    def act(name: str, role: str = "admin", **scope: Any) -> None:
        if name not in tokens:
            user = people.person(name, role, **scope)
            _, secret = ApiToken.objects.create(user=user, name="t", access="write")
            tokens[name] = str(secret)
        monkeypatch.setenv("GATEHOUSE_TOKEN", tokens[name])

    factories.apply(limit("1"))
    return act


@pytest.fixture
def change(act: Callable[..., None], tmp_path: Path) -> ChangeSet:
    """A draft of ada's, from files."""
    (tmp_path / "limits.yaml").write_text(LIMITS, encoding="utf-8")
    act("ada", "editor")
    words = ["apply", "-f", str(tmp_path), "--set", "platform", "--cluster", "prod", "--force"]
    assert run([*words, "--as-change", "Raise the maximum"]) == ExitCode.OK
    return ChangeSet.objects.get()


def state(change: ChangeSet) -> str:
    change.refresh_from_db()
    return str(change.state)


def test_a_change_is_found_and_told(change: ChangeSet, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("changes list --state draft --author ada -o name".split()) == ExitCode.OK
    assert capsys.readouterr().out == f"change/{change.pk}\n"
    assert run("changes list --state done".split()) == ExitCode.OK
    assert "no changes found" in capsys.readouterr().err
    assert run(["changes", "list"]) == ExitCode.OK
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["ID", "STATE", "AUTHOR", "AGE", "TITLE"]
    assert table[1].split()[:3] == [str(change.pk), "draft", "ada"]
    assert run(["changes", "show", f"change/{change.pk}"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "~ change LimitRange prod/team/lr" in told
    assert "raised from 1 to 2" in told
    assert change.content_hash[:12] in told
    assert run(["changes", "show", str(change.pk), "-o", "json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["state"], found["rollout"]) == (change.pk, "draft", None)
    assert run(["changes", "list", "-o", "yaml"]) == ExitCode.OK
    assert [each["id"] for each in yaml.safe_load_all(capsys.readouterr().out)] == [change.pk]


def test_four_eyes_publish_what_two_of_them_wrote(
    change: ChangeSet, act: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    rule()
    one = str(change.pk)
    assert run(["changes", "submit", one]) == ExitCode.OK
    assert "needs 1 approver" in capsys.readouterr().out
    assert state(change) == "in_review"
    assert run(["changes", "approve", one]) == ExitCode.ERROR
    assert "(403)" in capsys.readouterr().err
    act("bob")
    assert run(["changes", "request-changes", one, "--note", "say why"]) == ExitCode.OK
    assert state(change) == "draft"
    act("ada")
    assert run(["changes", "comment", one, "--note", "because"]) == ExitCode.OK
    assert run(["changes", "submit", one, "--content", change.content_hash[:12]]) == ExitCode.OK
    act("bob")
    capsys.readouterr()
    assert run(["changes", "approve", one, "--content", "0" * 12]) == ExitCode.HELD
    assert change.content_hash[:12] in capsys.readouterr().err
    assert state(change) == "in_review"
    words = ["--content", change.content_hash[:12], "--note", "fine"]
    assert run(["changes", "approve", one, *words]) == ExitCode.OK
    assert state(change) == "approved"
    assert run(["changes", "show", one]) == ExitCode.OK
    assert "because" in capsys.readouterr().out


def test_what_is_published_is_reverted(change: ChangeSet) -> None:
    one = str(change.pk)
    assert run(["changes", "submit", one]) == ExitCode.OK
    assert run(["changes", "publish", one]) == ExitCode.OK
    assert (state(change), cpu()) == ("done", "2")
    assert run(["changes", "revert", one]) == ExitCode.OK
    assert (state(change), cpu()) == ("reverted", "1")


def test_what_approvals_are_missing_is_told_by_field(
    change: ChangeSet, act: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    changes.submit(change, user="ada")
    rule()
    act("bob")
    capsys.readouterr()
    assert run(["changes", "publish", str(change.pk)]) == ExitCode.HELD
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("  approvals: needs 1 approver")]


def test_an_emergency_is_reviewed_afterwards(
    change: ChangeSet, act: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    rule()
    one = str(change.pk)
    act("root")
    assert run(["changes", "publish-now", one]) == ExitCode.ERROR
    assert run(["changes", "publish-now", one, "--reason", "nodes are full"]) == ExitCode.OK
    assert "nobody reviewed it" in capsys.readouterr().out
    assert run("changes list --unreviewed -o name".split()) == ExitCode.OK
    assert capsys.readouterr().out == f"change/{change.pk}\n"
    act("bob")
    assert run(["changes", "review", one]) == ExitCode.OK
    change.refresh_from_db()
    assert not change.unreviewed


def test_a_draft_is_abandoned_once(change: ChangeSet, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(change.pk)
    assert run(["changes", "submit", one]) == ExitCode.OK
    assert run(["changes", "withdraw", one]) == ExitCode.OK
    assert run(["changes", "abandon", one, "--note", "not needed"]) == ExitCode.OK
    assert state(change) == "abandoned"
    capsys.readouterr()
    assert run(["changes", "abandon", one]) == ExitCode.HELD
    assert "abandoned" in capsys.readouterr().err


def test_a_change_is_rolled_out_stopped_and_carried_on(
    change: ChangeSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, path = str(change.pk), tmp_path / "plan.yml"
    path.write_text(PLAN, encoding="utf-8")
    assert run(["changes", "advance", one]) == ExitCode.ERROR
    assert run(["changes", "plan", one, "-f", str(path)]) == ExitCode.OK
    assert "is not started" in capsys.readouterr().out
    assert run(["changes", "start", one]) == ExitCode.HELD
    assert run(["changes", "submit", one]) == ExitCode.OK
    assert run(["changes", "start", one, "--note", "slowly"]) == ExitCode.OK
    assert "stage 1 of 1, started by ada" in capsys.readouterr().out
    assert (state(change), cpu()) == ("rolling_out", "2")
    assert run(["changes", "stop", one]) == ExitCode.OK
    assert state(change) == "stopped"
    assert run(["changes", "resume", one]) == ExitCode.OK
    assert run(["changes", "advance", one, "--stage", "7"]) == ExitCode.OK
    assert state(change) == "rolling_out"
    assert run(["changes", "advance", one]) == ExitCode.OK
    assert state(change) == "done"
    capsys.readouterr()
    assert run(["changes", "plan", one, "-o", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["plan"]["on_trip"] == "revert"
    assert run(["changes", "show", one]) == ExitCode.OK
    assert "all places" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"waves": [{"percent": 0}]}', "  waves[0].percent: "),
        ("waves: [", "plan.yml: "),
        ("waves: 2026-01-01", "plan.yml: "),
    ],
)
def test_a_bad_plan_is_told_at_its_member(
    change: ChangeSet,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: str,
) -> None:
    path = tmp_path / "plan.yml"
    path.write_text(text, encoding="utf-8")
    assert run(["changes", "plan", str(change.pk), "-f", str(path)]) == ExitCode.ERROR
    assert words in capsys.readouterr().err
    assert run(["changes", "plan", str(change.pk), "-f", str(tmp_path / "no")]) == ExitCode.ERROR


def test_a_change_is_replayed_and_told(
    change: ChangeSet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(_seconds: float) -> None:
        """What a worker does while the command waits."""
        for uid in Replay.objects.values_list("uid", flat=True):
            tasks.carry_out_replay(str(uid))

    monkeypatch.setattr(replays.time, "sleep", work)
    capsys.readouterr()
    assert run(["changes", "replay", str(change.pk), "--days", "2"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[:2] == [
        "prod",
        "0 decisions, 0 replayed; the present policies repeat 0",
    ]
    assert Replay.objects.get().change_set == change.pk
    assert run(["changes", "replay", str(change.pk), "-o", "json"]) == ExitCode.OK
    assert [each["state"] for each in json.loads(capsys.readouterr().out)] == ["done"]


def test_a_change_elsewhere_is_not_there(
    change: ChangeSet, act: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    act("eve", "viewer", cluster="elsewhere")
    assert run(["changes", "show", str(change.pk)]) == ExitCode.ERROR
    assert f"there is no change {change.pk}" in capsys.readouterr().err
    assert run(["changes", "submit", str(change.pk)]) == ExitCode.ERROR
    act("vi", "viewer")
    assert run(["changes", "submit", str(change.pk)]) == ExitCode.ERROR
    assert "(403)" in capsys.readouterr().err
    assert state(change) == "draft"
