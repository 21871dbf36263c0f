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
from engine.wire import dumps, loads

ORACLE = Path(__file__).parents[3] / "shared" / "oracle"
CLASSES = ("limitrange-object", "limitrange-pod", "quota-object", "quota-pod", "limited", "both")
ENOUGH = 0.995
FOLDERS = {"1.36": ORACLE, "1.37": ORACLE / "v1.37.2"}
"""The recordings of each version."""

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


def answers(name: str, version: str) -> Any:
    with gzip.open(FOLDERS[version] / f"dev-{name}.jsonl.gz", "rb") as lines:
        for line in lines:
            case = {**loads(line), "kubernetesVersion": version}
            if version == "1.37":
                undo_completion(case)
            yield json.loads(line), json.loads(dumps(offline.answer_case(case)))


def undo_completion(case: Any) -> None:
    """Give a new pod the resources of its own that were posted.

    Their recorded form is that of a stored pod, whose resources this version completes only after
    its LimitRanges.
    """
    request, posted = case["request"], (case.get("posted") or {}).get("spec") or {}
    if request["operation"] == "CREATE" and "resources" in posted:
        request["object"]["spec"]["resources"] = posted["resources"]


@pytest.mark.parametrize("version", FOLDERS)
@pytest.mark.parametrize("name", CLASSES)
def test_answers_agree_with_the_server(name: str, version: str) -> None:
    if not FOLDERS[version].exists():
        pytest.skip(f"there are no recordings of {version}")
    compare = load_judge()
    tally: dict[str, list[bool]] = {}
    for case, answer in answers(name, version):
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
