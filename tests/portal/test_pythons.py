"""The other Pythons: those that are here are found, and those that are not are said aloud."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests import pythons

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_one_that_is_not_here_is_said_and_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert pythons.main(["3.99"]) == 0
    assert "*** Python 3.99 is not on this machine" in capsys.readouterr().out


def test_one_that_does_not_start_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python3.99"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    whole = tmp_path / "versions" / "3.99.1" / "bin"
    whole.mkdir(parents=True)
    (whole / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "nothing"))
    assert pythons._find("3.99") == ""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert pythons._find("3.99") == str(whole / "python")
