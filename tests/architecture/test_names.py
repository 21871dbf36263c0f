"""Names: one class name per concept, no gerunds as module names, few modules per package."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.test_size_and_words import MODULES, ROOT

ONE_IDEA = {
    # The row and the engine's value of the same object.
    *("LimitRange", "LimitedResource", "MetadataPolicy", "MetadataPolicyRule", "ResourceQuota"),
    "NamespaceClass",
    "KeptTest",
    "Charge",
    # The errors of changing append-only rows: of the record, and of the history.
    "AppendOnlyError",
    # Django finds commands by this name.
    "Command",
}
MOST_SIDE_BY_SIDE = 15


def test_no_two_classes_share_a_name_for_two_ideas() -> None:
    found = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name not in ONE_IDEA:
                found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_no_module_is_named_by_a_gerund() -> None:
    gerunds = [path for path in MODULES if path.stem.endswith("ing")]
    assert [str(path) for path in gerunds] == []


def test_no_package_has_too_many_modules_side_by_side() -> None:
    beside = defaultdict(list)
    for path in MODULES:
        if path.stem != "__init__":
            beside[str(path.parent.relative_to(ROOT))].append(path.stem)
    assert {where: len(m) for where, m in beside.items() if len(m) > MOST_SIDE_BY_SIDE} == {}
