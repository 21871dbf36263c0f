"""Plans in words and as JSON, and their exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli.plan_answers import ADDRESS, BLOCKED, CONFLICT, plan, planned

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gatehouse_cli.fake_portal import FakePortal

QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute, namespace: team}
spec: {hard: {pods: "10"}}
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The command line of a plan."""
    file = tmp_path / "files" / "quota.yaml"
    file.parent.mkdir()
    file.write_text(QUOTA, encoding="utf-8")
    return ["plan", "-f", str(file.parent), "--set", "platform", "--cluster", "prod"]


def test_request_is_a_dry_run_with_all_that_was_said(portal: FakePortal, words: list[str]) -> None:
    portal.answer(ADDRESS, plan(), method="POST")
    more = (
        "--prune --force --create-namespaces --confirm-deletions 9 --commit 3f2a --reason why -n x"
    )
    assert run([*words, *more.split()]) == ExitCode.OK
    assert portal.asked[0].body == {
        "cluster": "prod",
        "set": "platform",
        "documents": QUOTA,
        "namespace": "x",
        "commit": "3f2a",
        "createNamespaces": True,
        "prune": True,
        "confirmDeletions": 9,
        "force": True,
        "reason": "why",
    }


def test_what_was_not_said_is_not_sent(portal: FakePortal, words: list[str]) -> None:
    portal.answer(ADDRESS, plan(), method="POST")
    run(words)
    assert set(portal.asked[0].body) == {"cluster", "set", "documents"}


def test_plan_in_words(
    portal: FakePortal, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {**CONFLICT, "field": "spec.hard[services]"}
    answer = plan(
        planned("create", "new"),
        planned(changes=["limit of pods raised from 10 to 20"], kept=[kept]),
        planned("delete", "old"),
        planned("unchanged", "same"),
        commit="3f2a91c0ffee00",
        left=[{"kind": "LimitRange", "namespace": "team", "name": "limits"}],
        hints=["ResourceQuota team/new: pods is 0"],
    )
    portal.answer(ADDRESS, answer, method="POST")
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "cluster prod, set platform, commit 3f2a91c0ffee",
        "  + create   ResourceQuota team/new",
        "  ~ change   ResourceQuota team/compute",
        "             limit of pods raised from 10 to 20",
        "             spec.hard[services] stays as ui:anna set it",
        "  - delete   ResourceQuota team/old",
        "  the set has LimitRange team/limits, too, and no file has it; --prune deletes it",
        "plan: 1 to create, 1 to change, 1 to delete, 1 unchanged",
        "hint: ResourceQuota team/new: pods is 0",
    ]


def test_conflict_names_manager_revision_and_the_way_on(
    portal: FakePortal, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    by_git = {**CONFLICT, "manager": "git:apps", "commit": "3f2a", "time": "", "removed": True}
    conflict = planned("conflict", conflicts=[CONFLICT, by_git])
    portal.answer(ADDRESS, plan(conflict, blocked=[BLOCKED]), method="POST")
    assert run(words) == ExitCode.HELD
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[1] == "  ! conflict ResourceQuota team/compute"
    assert lines[2].startswith(
        " " * 13 + "spec.hard[pods] is managed by ui:anna, revision 4, 2026-01-02 00:00:00 UTC, "
    )
    assert lines[3].endswith("spec.hard[pods] was removed by git:apps, commit 3f2a, revision 4")
    assert lines[4] == "plan: 0 to create, 0 to change, 0 to delete, 1 in conflict, 0 unchanged"
    assert lines[5] == "blocked: 1 field is managed by others"
    assert "nothing was written in prod; " in printed.err
    assert "--force" in printed.err


def test_brake_names_the_number_to_confirm(
    portal: FakePortal, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = {"code": "prune-brake", "message": "too many"}
    portal.answer(ADDRESS, plan(planned("delete"), blocked=[blocked]), method="POST")
    assert run([*words, "--prune"]) == ExitCode.HELD
    assert "--confirm-deletions 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("action", "plain", "detailed"),
    [("unchanged", 0, 0), ("change", 0, 2), ("create", 0, 2), ("delete", 0, 2)],
)
def test_detailed_exit_code_tells_changes(
    portal: FakePortal, words: list[str], action: str, plain: int, detailed: int
) -> None:
    portal.answer(ADDRESS, plan(planned(action)), method="POST")
    assert run(words) == plain
    assert run([*words, "--detailed-exitcode"]) == detailed


@pytest.mark.parametrize("detail", [["--detailed-exitcode"], []])
@pytest.mark.parametrize("more", [["--prnue"], ["-f", "missing.yaml"], ["--set", ""]])
def test_error_is_never_taken_for_changes(
    portal: FakePortal,
    words: list[str],
    more: list[str],
    detail: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    portal.refuse(ADDRESS, 422, method="POST", detail="set: may not be empty")
    assert run([*words, *more, *detail]) == (1 if detail else ExitCode.ERROR)
    assert capsys.readouterr().err != ""


def test_several_clusters_are_several_plans(
    portal: FakePortal, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(ADDRESS, plan(planned("unchanged")), method="POST")
    portal.answer(ADDRESS, plan(planned("create"), cluster="test"), method="POST")
    assert run([*words, "--cluster", "test", "-o", "json", "--detailed-exitcode"]) == 2
    assert [each["cluster"] for each in json.loads(capsys.readouterr().out)] == ["prod", "test"]
    assert [asked.body["cluster"] for asked in portal.asked] == ["prod", "test"]


def test_error_of_a_document_is_told_at_its_place(
    portal: FakePortal, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files" / "second.yaml").write_text(QUOTA.replace("compute", "b"), "utf-8")
    error = {"code": "unknown_namespace", "message": "no team", "line": 10, "column": 12}
    portal.refuse(
        ADDRESS, 422, method="POST", title="Bad", errors={"documents.metadata.namespace": [error]}
    )
    assert run(words) == ExitCode.ERROR
    place = f"{tmp_path}/files/second.yaml:4:12"
    assert f"{place}: metadata.namespace: no team" in capsys.readouterr().err


def test_faulty_files_are_not_sent(
    portal: FakePortal, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files" / "bad.yaml").write_text(QUOTA.replace("hard", "hardd"), "utf-8")
    assert run(words) == ExitCode.ERROR
    assert f"{tmp_path}/files/bad.yaml:5:8: " in capsys.readouterr().err
    assert portal.asked == []


def test_other_kinds_are_left_out_and_said_to_be(
    portal: FakePortal, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(ADDRESS, plan(), method="POST")
    other = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    (tmp_path / "files" / "web.yaml").write_text(other, "utf-8")
    assert run(words) == ExitCode.OK
    assert "left out, no policy: Service web" in capsys.readouterr().err


def test_set_and_files_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan"]) == ExitCode.ERROR
    assert "Missing option '-f'" in capsys.readouterr().err
    assert run(["plan", "-f", "x"]) == ExitCode.ERROR
    assert "Missing option '--set'" in capsys.readouterr().err
