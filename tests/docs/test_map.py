"""The architecture page names every package, and only existing functions."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
PACKAGES = ("engine", "policies", "sync", "admission", "gatehouse_cli", "portal")


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_every_package_is_on_the_map() -> None:
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    on_page = set(re.findall(r"`([a-z_.]+)`", PAGE))
    below = ("migrations", "commands", "portal.pages.", "portal.dev.")
    missing = {
        name
        for name in packages - on_page
        if not any(name.endswith(end) or name.startswith(end) for end in below)
    }
    assert missing - set(PACKAGES) == set()


def test_steps_of_the_flows_exist_and_are_few() -> None:
    flows = re.findall(r"```mermaid\n(flowchart.*?)```", PAGE, re.DOTALL)[1:]
    assert len(flows) == 4
    for flow in flows:
        steps = re.findall(r'"([a-z_A-Z.]+)"', flow)
        assert len(steps) <= 12
        assert [step for step in steps if not exists(step)] == []


def test_modules_and_names_on_the_page_exist() -> None:
    names = set(
        re.findall(
            r"`((?:engine|policies|sync|admission|gatehouse_cli|portal)\.[a-z_A-Z.]+)`", PAGE
        )
    )
    assert [name for name in sorted(names) if not exists(name)] == []
    files = re.findall(
        r"`((?:engine|policies|sync|admission|gatehouse_cli|portal)/[a-z_/.]+)`", PAGE
    )
    assert [name for name in files if not (ROOT / name).exists() and "static" not in name] == []
