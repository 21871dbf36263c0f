"""A reduced case remains a case: optional parts are removed, required ones stay."""

from __future__ import annotations

from typing import Any

from tests.cluster.reduction import smaller
from tests.cluster.worlds import changed

QUOTA = {"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
CLAIM = {
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c"},
    "spec": {"storageClassName": "x"},
}
CHANGES = [[["spec", "size"], "1"], [["metadata", "labels"], {"a": "b"}]]


def case(**parts: Any) -> dict[str, Any]:
    return {
        "policies": [QUOTA],
        "operation": "UPDATE",
        "before": CLAIM,
        "changes": CHANGES,
        **parts,
    }


def test_a_change_goes_as_a_whole_or_stays() -> None:
    left = [each["changes"] for each in smaller(case())]
    assert [CHANGES[1]] in left
    assert [CHANGES[0]] in left
    assert all(changed(CLAIM, changes) for changes in left)


def test_each_part_goes_once_and_names_stay() -> None:
    forms = list(smaller(case(changes=[])))
    assert {**case(changes=[]), "policies": []} in forms
    assert {**case(changes=[]), "before": {**CLAIM, "spec": {}}} in forms
    assert all(policy["metadata"] == {"name": "q"} for form in forms for policy in form["policies"])


def test_the_original_case_is_not_changed_in_place() -> None:
    original = case()
    list(smaller(original))
    assert original == case()
