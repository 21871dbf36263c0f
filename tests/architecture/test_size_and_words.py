"""Limits of every module: size, docstring and name; and the constructs of the engine."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("portal", "admission", "sync", "gatehouse_cli", "policies", "engine")
MODULES = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts and path.stat().st_size
)
ENGINE = [path for path in MODULES if path.is_relative_to(ROOT / "engine")]
BANNED_NAMES = {"utils", "helpers", "common", "misc", "base", "core"}
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 50
PLAIN = set(
    "__future__ typing dataclasses collections enum re functools itertools json math operator "
    "fractions bisect datetime marshal engine".split()
)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def place(path: Path, node: ast.AST | None = None) -> str:
    line = getattr(node, "lineno", None)
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


def nodes(paths: list[Path]) -> Iterator[tuple[Path, ast.AST]]:
    return ((path, node) for path in paths for node in ast.walk(tree_of(path)))


def test_modules_are_short() -> None:
    texts = {place(path): path.read_text("utf-8") for path in MODULES}
    # Nobody reads or edits what is written from the API's schema.
    lengths = {
        name: len(text.splitlines())
        for name, text in texts.items()
        if "Written by ``make client``" not in text[:200]
    }
    assert len(lengths) > 300
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_module_has_a_docstring() -> None:
    assert [place(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def test_functions_are_short() -> None:
    long = {
        place(path, node): (node.end_lineno or 0) - node.lineno + 1
        for path, node in nodes(MODULES)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    too_long = {name: lines for name, lines in long.items() if lines > MOST_LINES_OF_A_FUNCTION}
    assert too_long == {}


def test_no_module_has_a_generic_name() -> None:
    assert [place(path) for path in MODULES if path.stem in BANNED_NAMES] == []


def test_engine_knows_no_float() -> None:
    found = [
        place(path, node)
        for path, node in nodes(ENGINE)
        if (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Name) and node.id == "float")
    ]
    assert found == []


def test_engine_imports_only_itself_and_plain_parts_of_the_library() -> None:
    imported = {
        (place(path, node), (alias.name if isinstance(node, ast.Import) else node.module or ""))
        for path, node in nodes(ENGINE)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert [found for found in imported if found[1].split(".")[0] not in PLAIN] == []


def test_engine_reads_no_clock() -> None:
    found = [
        place(path, node)
        for path, node in nodes(ENGINE)
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
    ]
    assert found == []
