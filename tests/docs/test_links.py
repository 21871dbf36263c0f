"""Links between pages resolve, and links to functions name existing functions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def links(page: Path) -> list[tuple[str, Path]]:
    found = LINK.findall(page.read_text("utf-8"))
    return [
        (text, (page.parent / target.partition("#")[0]).resolve())
        for text, target in found
        if not target.startswith(("http:", "https:", "#"))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    assert [str(target) for _, target in links(page) if not target.exists()] == []


def test_links_of_the_tour_name_definitions_of_their_modules() -> None:
    found = [
        (text.strip("`"), target)
        for text, target in links(ROOT / "docs" / "explanation" / "tour.md")
        if target.suffix == ".py"
    ]
    assert len(found) > 15
    for text, target in found:
        name = text.rpartition(".")[2]
        is_module = text in (target.name, target.stem)
        defined = re.search(
            rf"^\s*(?:async )?(?:def|class) {name}\b", target.read_text("utf-8"), re.MULTILINE
        )
        assert is_module or defined, f"{target} defines no {name}"
