"""The commit that files belong to: from the variables of CI systems, else from git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES: Final = ("GITHUB_SHA", "CI_COMMIT_SHA")
_GIT_SECONDS: Final = 10


def commit_of(paths: Sequence[str]) -> str:
    """The commit of these files; empty outside a repository, and for files changed since."""
    for name in VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    on_disk = [str(Path(path).resolve()) for path in paths if path != "-"]
    if len(on_disk) < len(paths):
        return ""
    folder = Path(on_disk[0])
    folder = folder if folder.is_dir() else folder.parent
    commit = _git(folder, "rev-parse", "HEAD")
    if commit and _git(folder, "status", "--porcelain", "--", *on_disk) != "":
        click.echo("the files differ from the last commit: no commit is recorded", err=True)
        return ""
    return commit or ""


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of git; None if it failed, or if there is none."""
    try:
        done = subprocess.run(  # noqa: S603  no shell; the paths stand behind "--"
            ["git", "-C", str(folder), *arguments],  # noqa: S607  the user's own git
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
