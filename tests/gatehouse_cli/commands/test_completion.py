"""Scripts of shells, and the words that they are given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatehouse_cli.main import run

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_asks_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_GATEHOUSE_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("gatehouse compl", ["completion"]),
        ("gatehouse changes publish", ["publish", "publish-now"]),
        ("gatehouse changes list --state re", ["reverted"]),
    ],
)
def test_words_of_a_command_are_completed(typed: str, completed: list[str]) -> None:
    asked = {
        "_GATEHOUSE_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "gatehouse_cli"],
        cwd=ROOT,
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "".join(f"plain,{word}\n" for word in completed)
