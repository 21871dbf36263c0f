"""The commit of files: variables of CI, else git; none for what no commit has."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.plans.commit import commit_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("variable", ["GITHUB_SHA", "CI_COMMIT_SHA"])
def test_variable_of_ci_comes_first(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "3f2a")
    assert commit_of(["-"]) == "3f2a"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(  # noqa: S603  our own words
        ["git", *identity, *words],  # noqa: S607
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if not shutil.which("git"):
        pytest.skip("there is no git")
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a.yaml").write_text("a", encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "First")
    return folder


def test_commit_of_the_repository(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert commit_of([str(repository)]) == head
    assert commit_of([str(repository / "a.yaml")]) == head


def test_changed_files_have_none(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "b.yaml").write_text("b", encoding="utf-8")
    assert commit_of([str(repository)]) == ""
    assert "no commit is recorded" in capsys.readouterr().err
    assert commit_of([str(repository / "a.yaml")]) != ""


def test_standard_input_has_none(repository: Path) -> None:
    assert commit_of([str(repository), "-"]) == ""


def test_other_folders_have_none(tmp_path: Path) -> None:
    assert commit_of([str(tmp_path)]) == ""
