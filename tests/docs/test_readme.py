"""Every command that the README and the guides show is run, as it is printed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md")))
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
OURS = ".venv/bin/python manage.py "
MODULE = ".venv/bin/python -m portal."
# Run by tests/servers (make run), by this very run (make test), or by a container engine.
ELSEWHERE = re.compile(r"make (run|test)|(GATEHOUSE_\w+=\S+ )?docker compose up .*")


def commands() -> list[str]:
    blocks = (block for page in PAGES for block in BLOCK.findall(page.read_text("utf-8")))
    return list(dict.fromkeys(line.strip() for block in blocks for line in block.splitlines()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh installation, with the demo clusters and the file a guide asks kubectl for."""
    made = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "docs" / "examples", made / "docs" / "examples")
    shutil.copy(ROOT / "docs" / "examples" / "limits.yaml", made / "policies.yaml")
    shutil.copytree(ROOT / "deploy", made / "deploy", ignore=shutil.ignore_patterns("secrets"))
    for command in ("bootstrap", "demo"):
        assert run(f"{OURS}{command}", made).returncode == 0
    return made


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    if command.startswith(OURS):
        words = [sys.executable, str(ROOT / "manage.py"), *words[2:]]
    elif command.startswith(MODULE):
        words = [sys.executable, *words[1:], "--folder", str(folder)]
    elsewhere = {"GATEHOUSE_DATABASE_URL", "GATEHOUSE_BROKER_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in elsewhere}
    environment = {**kept, "GATEHOUSE_VAR": str(folder / "var"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(  # noqa: S603  the words stand in our own pages
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", [c for c in commands() if not ELSEWHERE.fullmatch(c)])
def test_command_does_what_the_page_says(command: str, folder: Path) -> None:
    if "--cluster prod" in command:
        run(f"{OURS}webhook_credential prod --create", folder)
    done = run(command, folder)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_the_two_commands_stand_in_the_readme() -> None:
    assert {"make run", "make test"} <= set(commands())
