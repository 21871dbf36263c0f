"""The front-end bundle: built once, again after a change, and plain without Node."""

from __future__ import annotations

import json
import re
import stat
from typing import TYPE_CHECKING

import pytest

from portal.dev import bundle
from portal.dev.install import InstallError

if TYPE_CHECKING:
    from pathlib import Path

BUILT = "portal/portal.js"
ENTRIES = {
    "portal.css": "portal/frontend/css/portal.css",
    "portal.js": "portal/frontend/js/portal.js",
}


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one source, and a machine whose Node writes one file."""
    static, sources = tmp_path / "portal" / "static", tmp_path / "portal" / "frontend"
    families = tmp_path / "portal" / "pages"
    (sources / "css").mkdir(parents=True)
    (families / "home").mkdir(parents=True)
    (sources / "entries.json").write_text(json.dumps(ENTRIES), encoding="utf-8")
    (sources / "mark.svg").write_text("<svg/>", encoding="utf-8")
    (sources / "css" / "portal.css").write_text(
        'a {}\n@import url("../../pages/home/home.css");\n', encoding="utf-8"
    )
    (families / "home" / "home.css").write_text("h {}", encoding="utf-8")
    (tmp_path / "package-lock.json").write_text("{}", encoding="utf-8")
    for name, value in {
        "ROOT": tmp_path,
        "SOURCES": sources,
        "FAMILIES": families,
        "STATIC": static,
        "STAMP": static / ".stamp",
        "PACKAGES": tmp_path / "node_modules",
        "LOCK": tmp_path / "package-lock.json",
    }.items():
        monkeypatch.setattr(bundle, name, value)
    machine = tmp_path / "bin"
    machine.mkdir()
    work = f'[ "$1" = --version ] && echo v20.1.0 || {{ mkdir -p {static}/portal; '
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


@pytest.mark.parametrize("source", ["frontend/css/portal.css", "pages/home/home.css"])
def test_changed_source_is_bundled_again_and_packages_stay(source: str, checkout: Path) -> None:
    bundle.main()
    (checkout / "portal" / source).write_text("b {}", encoding="utf-8")
    bundle.main()
    assert built(checkout) == 2
    assert (checkout / "calls").read_text(encoding="utf-8").split() == ["ci"]


def test_changed_lock_fetches_packages_again(checkout: Path) -> None:
    bundle.main()
    (checkout / "package-lock.json").write_text("{ }", encoding="utf-8")
    bundle.main()
    assert (checkout / "calls").read_text(encoding="utf-8").split() == ["ci", "ci"]


@pytest.mark.parametrize("problem", ["npm", "node"])
def test_pages_are_plain_without_packages_and_the_next_start_tries_again(
    problem: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (checkout / "bin" / problem).read_text(encoding="utf-8")
    version = '[ "$1" = --version ] && echo v20.1.0 && exit 0'
    program(checkout / "bin" / problem, f"{version}; echo no way >&2; exit 1")
    assert bundle.main() == 0
    assert "no way" in capsys.readouterr().out
    static = checkout / "portal" / "static" / "portal"
    assert (static / "portal.css").read_text(encoding="utf-8") == "a {}\nh {}\n"
    assert (static / "portal.js").read_text(encoding="utf-8") == ""
    assert (static / "mark.svg").read_text(encoding="utf-8") == "<svg/>"
    program(checkout / "bin" / problem, whole.partition("\n")[2])
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


def test_pages_load_what_is_built_in_both_ways() -> None:
    built = set(json.loads((bundle.SOURCES / "entries.json").read_text(encoding="utf-8")))
    of_scripts = {name.removesuffix(".js") + ".css" for name in built if name.endswith(".js")}
    loaded = {
        name
        for path in (bundle.ROOT / "templates").rglob("*.html")
        for name in re.findall(r"{% static '(.+?)' %}", path.read_text(encoding="utf-8"))
    }
    assert {name.partition("/")[0] for name in loaded} == {"portal"}
    found = {name.removeprefix("portal/") for name in loaded}
    assert built <= found <= built | of_scripts | {"icons.svg", "mark.svg"}


@pytest.mark.parametrize(
    "family", ["access", "clusters", "decisions", "home", "namespaces", "quotas"]
)
def test_pages_load_the_style_of_their_family(family: str) -> None:
    pages = {
        path.name: path.read_text(encoding="utf-8")
        for path in (bundle.ROOT / "templates" / family).glob("*.html")
    }
    sheet = f"{{% static 'portal/{family}.css' %}}"
    unstyled = [name for name, text in pages.items() if "{% extends" in text and sheet not in text]
    assert unstyled == []


def test_styles_of_families_are_not_loaded_by_all_pages() -> None:
    common = (bundle.SOURCES / "css" / "portal.css").read_text(encoding="utf-8")
    # The palette is a part of the frame.
    assert re.findall(r"pages/(\w+)/", common) == ["search"]
