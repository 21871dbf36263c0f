"""Commands of our pages, and the outputs shown after them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
)
# A block of commands; optionally followed by a block of their combined output.
BLOCK = re.compile(
    r"^ *```sh\n(?P<commands>.*?)^ *```\n(?:\n^ *```text\n(?P<output>.*?)^ *```\n)?",
    re.DOTALL | re.MULTILINE,
)
OURS = ".venv/bin/python manage.py "
MODULE = ".venv/bin/python -m portal."
CLI = ".venv/bin/python -m gatehouse_cli "
INSTALLED_CLI = "gatehouse "
EXIT_CODE = re.compile(r"# exit code (\d+)$")
# Run by tests/servers (make run), by this test run itself (make test), with a package index, or by
# a container engine.
ELSEWHERE = re.compile(r"make (run|test)|pipx .*|(GATEHOUSE_\w+=\S+ )?docker compose up .*")


@dataclass(frozen=True, slots=True)
class Command:
    """One command line, and its expected exit code."""

    line: str

    @property
    def code(self) -> int:
        found = EXIT_CODE.search(self.line)
        return int(found[1]) if found else 0

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run it in a folder, on its data."""
        words = shlex.split(self.line, comments=True)
        if self.line.startswith(OURS):
            words = [sys.executable, str(ROOT / "manage.py"), *words[2:]]
        elif self.line.startswith(CLI):
            words = [sys.executable, *words[1:]]
        elif self.line.startswith(INSTALLED_CLI):
            words = [sys.executable, "-m", "gatehouse_cli", *words[1:]]
        elif self.line.startswith(MODULE):
            words = [sys.executable, *words[1:], "--folder", str(folder)]
        elsewhere = {"GATEHOUSE_DATABASE_URL", "GATEHOUSE_BROKER_URL"}
        kept = {name: value for name, value in os.environ.items() if name not in elsewhere}
        environment = {**kept, "GATEHOUSE_VAR": str(folder / "var"), "PYTHONPATH": str(ROOT)}
        return subprocess.run(  # noqa: S603  the words stand in our own pages
            words,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive commands and their output; empty if the page does not show it."""

    commands: tuple[Command, ...]
    output: str


def blocks(page: Path) -> list[Block]:
    """The commands of a page, in order."""
    return [
        Block(
            tuple(Command(line.strip()) for line in found["commands"].splitlines()),
            found["output"] or "",
        )
        for found in BLOCK.finditer(page.read_text("utf-8"))
    ]


def pattern(output: str) -> re.Pattern[str]:
    """The pattern of a shown output: `…` matches any text in a line, alone any number of lines."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in output.splitlines()
    ]
    return re.compile("".join(lines))
