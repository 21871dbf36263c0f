"""The creation of ``.venv``: once, again if it is half made, and one line if it fails."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

import pytest

from portal.dev import install

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose requirement file is empty."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "main.txt").write_text("# nothing\n", encoding="utf-8")
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    return tmp_path


@pytest.mark.servers
def test_half_made_environment_is_made_again_and_then_kept(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").write_text("#!/nowhere\n", encoding="utf-8")
    assert install.main(["main"]) == 0
    assert "half made" in capsys.readouterr().out
    assert install.main(["main"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.servers
def test_failed_install_is_one_line(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = checkout / "missing-1.0-py3-none-any.whl"
    wanted = f"{missing.as_uri()} --hash=sha256:{'0' * 64}\n"
    (checkout / "requirements" / "main.txt").write_text(wanted, encoding="utf-8")
    assert install.main([]) == 1
    error = capsys.readouterr().err
    assert (error.count("\n"), "missing-1.0" in error) == (1, True)
    assert not list((checkout / ".venv").glob("*.stamp"))


@pytest.mark.servers
def test_newer_release_of_a_package_with_an_extra_changes_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = checkout / "index"
    index.mkdir()
    pinned = _wheel(index, "measure", "1.0", "Provides-Extra: toml")
    _wheel(index, "measure", "1.1", "Provides-Extra: toml")
    asking = _wheel(index, "report", "1.0", "Requires-Dist: measure[toml]>=0.9")
    lines = [
        f"{name}==1.0 --hash=sha256:{hash_}\n"
        for name, hash_ in (("report", asking), ("measure", pinned))
    ]
    (checkout / "requirements" / "main.txt").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert install.main(["main"]) == 0
    assert list(checkout.glob(".venv/lib/*/site-packages/measure-1.0.dist-info"))


def _wheel(index: Path, name: str, version: str, *metadata: str) -> str:
    """Write an empty package into a folder of wheels; returns the SHA-256 of the file."""
    path, info = index / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "\n".join(head) + "\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_old_python_is_named_with_the_way_out(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "OLDEST", (99, 0))
    assert install.main(["main"]) == 1
    assert "is too old; run: make PYTHON=" in capsys.readouterr().err


def test_python_without_venv_is_one_line(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install.sys, "executable", "/bin/false")
    assert install.main(["main"]) == 1
    assert "apt-get install python3-venv" in capsys.readouterr().err
