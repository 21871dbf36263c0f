"""Messages of the build of Kubernetes' own tests, without building."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.cluster.binaries import cache
from tests.cluster.build import UNAVAILABLE
from tests.upstream import build

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_nothing_is_built_if_the_program_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    cache().mkdir(parents=True)
    (cache() / build.PROGRAM).touch(0o700)
    assert build.main() == 0
    assert build.find() == cache() / build.PROGRAM


def test_missing_go_has_an_exit_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    assert build.main() == UNAVAILABLE
    assert "CANNOT BE BUILT HERE: there is no Go" in capsys.readouterr().out
    assert build.find() is None
