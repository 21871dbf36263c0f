"""The house's measures: how long, how named, and no float among the rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("portal", "admission", "policies")
MODULES = sorted(
    path
    for room in ROOMS
    for path in (ROOT / room).rglob("*.py")
    if "migrations" not in path.parts and path.stat().st_size
)
ENGINE = sorted((ROOT / "policies" / "engine").rglob("*.py"))
BANNED_NAMES = {"utils", "helpers", "common", "misc", "base", "core"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_short_and_opens_with_a_door_plate(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), "says what lives here"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_are_short(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTION)]
    long = [f.name for f in functions if (f.end_lineno or 0) - f.lineno + 1 > 50]
    assert long == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_name_says_what_lives_there(path: Path) -> None:
    assert path.stem not in BANNED_NAMES


@pytest.mark.parametrize("path", ENGINE, ids=name_of)
def test_engine_knows_no_float(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    literals = [n for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    assert [n.lineno for n in literals if isinstance(n.value, float)] == []
    assert [n.lineno for n in names if n.id == "float"] == []


@pytest.mark.parametrize("path", ENGINE, ids=name_of)
def test_engine_imports_only_itself_and_plain_parts_of_the_library(path: Path) -> None:
    allowed = {"policies", "__future__", "typing", "dataclasses", "collections", "enum", "re"}
    allowed |= {
        "functools",
        "itertools",
        "json",
        "math",
        "operator",
        "fractions",
        "bisect",
        "datetime",
        "marshal",
    }
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert imported <= allowed


@pytest.mark.parametrize("path", ENGINE, ids=name_of)
def test_engine_reads_no_clock(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    asked = [n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    assert {"now", "utcnow", "today"} & set(asked) == set()
