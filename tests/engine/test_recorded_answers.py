"""Recorded answers of a live API server: every judged verdict agrees, and nearly every text.

Reads the folder beside the repository where it is there; skips, loudly, where it is not.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from admission import offline
from engine.wire import dumps

ORACLE = Path(__file__).parents[3] / "shared" / "oracle"
CLASSES = ("limitrange-object", "limitrange-pod", "quota-object", "quota-pod", "limited", "both")
ENOUGH = 0.995

pytestmark = [
    pytest.mark.no_cover,
    pytest.mark.oracle,
    pytest.mark.skipif(not ORACLE.exists(), reason="../shared/oracle is not there"),
]


def load_judge() -> Any:
    sys.path.insert(0, str(ORACLE))
    try:
        spec = importlib.util.spec_from_file_location("oracle_compare", ORACLE / "compare.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(ORACLE))


def best_marks(compare: Any, case: Any, answer: Any) -> dict[str, bool]:
    """The marks against the recorded outcome that agrees best: the server's order varies."""
    expected, answer = case["expect"], dict(answer)
    answer.setdefault("allowed", False if case["class"].endswith("-object") else None)
    judged = []
    for outcome in [expected, *({**a, "flags": []} for a in expected.get("alternatives", []))]:
        same = outcome["allowed"] == expected["allowed"]
        used = expected.get("used") if same else None
        judged.append(compare.judge(outcome, answer, case["class"], used))
    return max(judged, key=lambda m: (m["verdict"], -sum(not v for v in m.values())))


def answers(name: str) -> Any:
    with gzip.open(ORACLE / f"dev-{name}.jsonl.gz", "rb") as lines:
        for line in lines:
            yield json.loads(line), json.loads(dumps(offline.answer_line(line)))


@pytest.mark.parametrize("name", CLASSES)
def test_answers_agree_with_the_server(name: str) -> None:
    compare = load_judge()
    tally: dict[str, list[bool]] = {}
    for case, answer in answers(name):
        if compare.APART & set(case["expect"]["flags"]):
            continue
        marks = best_marks(compare, case, answer)
        if "message any order" in marks:
            either = marks["message any order"] or marks["message starts so"]
            marks = {k: v for k, v in marks.items() if not k.startswith("message")}
            marks["message"] = either
        for mark, agrees in marks.items():
            tally.setdefault(mark, []).append(agrees)
    shares = {mark: sum(found) / len(found) for mark, found in tally.items()}
    assert shares.pop("verdict") == 1
    assert {mark: share for mark, share in shares.items() if share < ENOUGH} == {}
