"""Runs every command of README, tutorial and guides, and compares its output."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ELSEWHERE, OURS, PAGES, ROOT, Block, Command, blocks, pattern

if TYPE_CHECKING:
    from pathlib import Path


def is_here(block: Block) -> bool:
    return not any(ELSEWHERE.fullmatch(command.line) for command in block.commands)


SHOWN = [page for page in PAGES if any(block.output for block in blocks(page))]
COMMANDS = dict.fromkeys(
    command
    for page in PAGES
    if page not in SHOWN
    for block in blocks(page)
    for command in block.commands
    if not ELSEWHERE.fullmatch(command.line)
)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new installation, with the demo clusters and the file that a guide passes to kubectl."""
    made = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "docs" / "examples", made / "docs" / "examples")
    shutil.copy(ROOT / "docs" / "examples" / "limits.yaml", made / "policies.yaml")
    shutil.copytree(ROOT / "deploy", made / "deploy", ignore=shutil.ignore_patterns("secrets"))
    for command in ("bootstrap", "demo"):
        assert Command(f"{OURS}{command}").run(made).returncode == 0
    return made


@pytest.fixture
def folder(installation: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return shutil.copytree(installation, tmp_path / "here")


@pytest.mark.servers
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.line)
def test_command_ends_as_shown(command: Command, folder: Path) -> None:
    if "--cluster prod" in command.line:
        Command(f"{OURS}webhook_credential prod --create").run(folder)
    done = command.run(folder)
    assert (done.returncode, "Traceback" in done.stderr) == (command.code, False), done.stderr


@pytest.mark.servers
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.name)
def test_page_shows_the_output_of_its_commands(page: Path, folder: Path) -> None:
    """In order: each command sees the results of the previous ones."""
    for block in filter(is_here, blocks(page)):
        printed = []
        for command in block.commands:
            done = command.run(folder)
            assert (done.returncode, "Traceback" in done.stderr) == (command.code, False), (
                f"{command.line}: {done.stderr}"
            )
            printed.append(done.stdout)
        if block.output:
            assert pattern(block.output).fullmatch("".join(printed)), "".join(printed)


def test_outputs_are_shown_by_the_tutorial() -> None:
    assert "tutorial.md" in {page.name for page in SHOWN}


def test_pattern_matches_only_placeholders_freely() -> None:
    shown = pattern("first … line\n…\nlast\n")
    assert shown.fullmatch("first 1 line\na\nb\nlast\n")
    assert shown.fullmatch("first 1 line\nlast\n")
    assert not shown.fullmatch("first 1 line\nlast\nmore\n")
    assert not shown.fullmatch("first 1\nline\nlast\n")


def test_the_two_commands_stand_in_the_readme() -> None:
    shown = {command.line for block in blocks(PAGES[0]) for command in block.commands}
    assert {"make run", "make test"} <= shown
