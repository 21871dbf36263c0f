"""Deletion: looked up first, asked about, at the version that was seen."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli import api_objects

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gatehouse_cli.fake_portal import FakePortal

QUOTA = "/api/v1/resourcequotas/7/"
FILE = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute, namespace: team}
spec: {hard: {pods: "10"}}
"""


@pytest.fixture(autouse=True)
def _stored(portal: FakePortal) -> None:
    portal.page("/api/v1/resourcequotas/", api_objects.quota())
    portal.page("/api/v1/namespaces/", api_objects.namespace())


def deletions(portal: FakePortal) -> list[str]:
    return [asked.path for asked in portal.asked if asked.method == "DELETE"]


def test_confirmed_object_is_deleted_at_its_version(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(QUOTA, method="DELETE", status=204)
    words = "delete quota compute -n team --cluster prod --yes --reason old"
    assert run(words.split()) == ExitCode.OK
    asked = portal.asked[-1]
    assert (asked.path, asked.query, asked.headers["If-Match"]) == (QUOTA, {"reason": "old"}, '"3"')
    assert capsys.readouterr().out == "resourcequota/compute in prod/team is deleted\n"


def test_without_a_terminal_nothing_is_deleted(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("delete quota compute".split()) == ExitCode.ERROR
    assert "say --yes" in capsys.readouterr().err
    assert deletions(portal) == []


class Terminal(io.StringIO):
    """Standard input of a person."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", ExitCode.OK), ("n\n", ExitCode.INTERRUPTED)])
def test_person_is_asked(
    portal: FakePortal,
    answer: str,
    code: ExitCode,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    portal.answer(QUOTA, api_objects.quota(), method="DELETE")
    portal.answer(QUOTA, method="DELETE", status=204)
    assert run("delete quota compute".split()) == code
    assert "resourcequota/compute in prod/team" in capsys.readouterr().err
    asked = [each.query for each in portal.asked if each.method == "DELETE"]
    assert asked == [{"dryRun": "All"}, *([{}] if code == ExitCode.OK else [])]


def test_dry_run_shows_what_goes_with_it(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {**api_objects.namespace(), "deletes": {"resource quotas": 2, "limit ranges": 0}}
    portal.answer("/api/v1/namespaces/7/", answer, method="DELETE")
    assert run("delete ns team --dry-run".split()) == ExitCode.OK
    assert portal.asked[-1].query == {"dryRun": "All"}
    assert capsys.readouterr().out == (
        "namespace/team in prod would be deleted, with 2 resource quotas\n"
    )


def test_files_are_deleted_policies_first(portal: FakePortal, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FILE, encoding="utf-8")
    portal.answer(QUOTA, method="DELETE", status=204)
    portal.answer("/api/v1/namespaces/7/", method="DELETE", status=204)
    assert run(["delete", "-f", str(tmp_path), "--cluster", "prod", "--yes"]) == ExitCode.OK
    assert deletions(portal) == [QUOTA, "/api/v1/namespaces/7/"]
    assert portal.asked[0].query["cluster"] == "prod"


def test_nothing_is_deleted_if_one_object_is_missing(
    portal: FakePortal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answers[("GET", "/api/v1/namespaces/")].clear()
    portal.page("/api/v1/namespaces/")
    (tmp_path / "a.yaml").write_text(FILE, encoding="utf-8")
    words = ["delete", "-f", str(tmp_path), "--cluster", "prod", "--yes"]
    assert run(words) == ExitCode.ERROR
    assert 'there is no namespace "team"' in capsys.readouterr().err
    assert deletions(portal) == []
    portal.answer(QUOTA, method="DELETE", status=204)
    assert run([*words, "--ignore-not-found"]) == ExitCode.OK
    assert deletions(portal) == [QUOTA]


def test_object_changed_meanwhile_stays(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.refuse(QUOTA, 412, method="DELETE", detail="the object is at another version")
    assert run("delete quota compute --yes".split()) == ExitCode.ERROR
    assert "has just been changed by somebody; look again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("delete", "name a KIND and a NAME, or files with -f"),
        ("delete quota", "name a KIND and a NAME"),
        ("delete quota compute -f x --cluster prod", "not both"),
        ("delete decisions x", "decisions cannot be deleted; known: clusters"),
        ("delete limitedresources prod", "limitedresources cannot be deleted"),
        ("delete -f x", "name a cluster"),
        ("delete -f missing.yaml --cluster prod", "missing.yaml: no such file or directory"),
    ],
)
def test_what_names_no_object_is_refused(
    portal: FakePortal, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == ExitCode.ERROR
    assert message in capsys.readouterr().err
    assert portal.asked == []
