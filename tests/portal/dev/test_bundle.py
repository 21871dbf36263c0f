"""The front-end bundle: built once, again after a change, and plain without Node."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from portal.dev import bundle
from portal.dev.install import InstallError

if TYPE_CHECKING:
    from pathlib import Path

BUILT = "portal/js/portal.js"


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one source, and a machine whose Node writes one file."""
    static, sources = tmp_path / "portal" / "static", tmp_path / "portal" / "frontend"
    (sources / "css").mkdir(parents=True)
    (sources / "css" / "portal.css").write_text("a {}", encoding="utf-8")
    (tmp_path / "package-lock.json").write_text("{}", encoding="utf-8")
    for name, value in {
        "ROOT": tmp_path,
        "SOURCES": sources,
        "STATIC": static,
        "STAMP": static / ".stamp",
        "PACKAGES": tmp_path / "node_modules",
        "LOCK": tmp_path / "package-lock.json",
    }.items():
        monkeypatch.setattr(bundle, name, value)
    machine = tmp_path / "bin"
    machine.mkdir()
    work = f'[ "$1" = --version ] && echo v20.1.0 || {{ mkdir -p {static}/portal/js; '
    program(machine / "node", f"{work} echo built >> {static}/{BUILT}; }}")
    program(machine / "npm", f"mkdir -p {tmp_path}/node_modules; echo $1 >> {tmp_path}/calls")
    monkeypatch.setenv("PATH", f"{machine}:/bin:/usr/bin")
    return tmp_path


def built(checkout: Path) -> int:
    """How often it was built."""
    return len((checkout / "portal" / "static" / BUILT).read_text(encoding="utf-8").splitlines())


def test_second_time_there_is_nothing_to_do(checkout: Path) -> None:
    assert (bundle.main(), bundle.main()) == (0, 0)
    assert built(checkout) == 1


def test_changed_source_is_bundled_again_and_packages_stay(checkout: Path) -> None:
    bundle.main()
    (checkout / "portal" / "frontend" / "css" / "portal.css").write_text("b {}", encoding="utf-8")
    bundle.main()
    assert built(checkout) == 2
    assert (checkout / "calls").read_text(encoding="utf-8").split() == ["ci"]


def test_changed_lock_fetches_packages_again(checkout: Path) -> None:
    bundle.main()
    (checkout / "package-lock.json").write_text("{ }", encoding="utf-8")
    bundle.main()
    assert (checkout / "calls").read_text(encoding="utf-8").split() == ["ci", "ci"]


@pytest.mark.parametrize("trouble", ["npm", "node"])
def test_pages_are_plain_without_packages_and_the_next_start_tries_again(
    trouble: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (checkout / "bin" / trouble).read_text(encoding="utf-8")
    version = '[ "$1" = --version ] && echo v20.1.0 && exit 0'
    program(checkout / "bin" / trouble, f"{version}; echo no way >&2; exit 1")
    assert bundle.main() == 0
    assert "no way" in capsys.readouterr().out
    static = checkout / "portal" / "static" / "portal"
    assert (static / "css" / "portal.css").read_text(encoding="utf-8") == "a {}"
    assert (static / "js" / "portal.js").read_text(encoding="utf-8") == ""
    program(checkout / "bin" / trouble, whole.partition("\n")[2])
    assert bundle.main() == 0
    assert built(checkout) == 1


def test_old_node_is_replaced_by_one_of_the_index(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed: list[str] = []

    def refuse(name: str) -> None:
        installed.append(name)
        raise InstallError("no index")

    monkeypatch.setattr(bundle, "install", refuse)
    program(checkout / "bin" / "node", "echo v16.0.0")
    assert bundle.main() == 0
    assert installed == ["node"]
    assert "no index" in capsys.readouterr().out
