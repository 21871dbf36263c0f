"""Who enforces is switched after it was shown what that would change."""

from __future__ import annotations

from typing import Any

import pytest

from engine.policy import Authority
from policies.simulation.authority_preview import EXAMPLES, Judged, what_changes

PORTAL, NATIVE = Authority.PORTAL, Authority.NATIVE


def judged(namespace: str = "ns", authority: str = "portal", **reasons: Any) -> Judged:
    return Judged(id="x", namespace=namespace, target="ns/p", authority=authority, **reasons)


@pytest.mark.parametrize(
    ("to", "decision", "changes"),
    [
        pytest.param(NATIVE, judged(refused=("ExceededQuota",)), True, id="quota"),
        pytest.param(NATIVE, judged(refused=("MaxConstraint", "MustSpecify")), True, id="both"),
        pytest.param(NATIVE, judged(refused=("RejectedByRule",)), False, id="metadata"),
        pytest.param(
            NATIVE, judged(refused=("MaxConstraint", "RejectedByRule")), False, id="metadata-too"
        ),
        pytest.param(NATIVE, judged(refused=("InsufficientQuota",)), False, id="cover"),
        pytest.param(NATIVE, judged(), False, id="allowed"),
        pytest.param(NATIVE, judged("new", refused=("ExceededQuota",)), False, id="not-native-yet"),
        pytest.param(
            PORTAL, judged(authority="native", observed=("ExceededQuota",)), True, id="warned"
        ),
        pytest.param(
            PORTAL,
            judged(authority="native", observed=("MaxConstraint",), refused=("RejectedByRule",)),
            False,
            id="refused-anyway",
        ),
        pytest.param(PORTAL, judged(observed=("ExceededQuota",)), False, id="only-watched"),
    ],
)
def test_decision_is_judged_again_as_if_the_other_enforced(
    to: Authority, decision: Judged, *, changes: bool
) -> None:
    found = what_changes(to, [decision], missing={"new": ["LimitRange lr"]})
    assert found.verdicts == found.let_through + found.refused == changes
    assert found.looked_at == 1


def test_examples_are_few() -> None:
    many = [judged(refused=("ExceededQuota",))] * (EXAMPLES + 5)
    found = what_changes(NATIVE, many, missing={})
    assert (found.let_through, len(found.examples)) == (EXAMPLES + 5, EXAMPLES)
    assert found.by_namespace == (("ns", EXAMPLES + 5),)


def test_namespaces_come_by_how_much_changes_there() -> None:
    refused = {"refused": ("ExceededQuota",)}
    many = [judged("a", **refused), judged("b", **refused), judged("b", **refused), judged("c")]
    assert what_changes(NATIVE, many, missing={}).by_namespace == (("b", 2), ("a", 1))
