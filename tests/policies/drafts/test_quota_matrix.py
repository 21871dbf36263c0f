"""Quotas as priority by resource: which rows a draft has, where it is typed, what is offered."""

from __future__ import annotations

from typing import Any

import pytest

from engine.policy_manifests import build_policy_set
from policies.drafts.forms import quota
from policies.drafts.forms.quota_matrix import ANY, ELSEWHERE, NONE, Matrix, matrix_of
from tests.builders import resource_quota


def high(*values: str, operator: str = "In") -> dict[str, Any]:
    entry = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"matchExpressions": [entry]}


def laid_out(draft: dict[str, Any], *others: dict[str, Any]) -> Matrix:
    before = build_policy_set(others, [], namespace="ns")
    found = matrix_of(draft, quota.show(draft), before, ["high", "low"])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("selector", "own"),
    [
        (None, {ANY}),
        (high("high"), {"high"}),
        (high(operator="Exists"), {"high", "low"}),
        (high("high", operator="NotIn"), {"low", NONE}),
        (high("other"), {ELSEWHERE}),
    ],
    ids=["all", "in", "exists", "not in", "of no class"],
)
def test_draft_has_the_rows_it_covers(selector: dict[str, Any] | None, own: set[str]) -> None:
    scoped = {"scopeSelector": selector} if selector else {}
    found = laid_out(resource_quota({"pods": "3"}, **scoped))
    assert {band.name for band in found.bands if band.is_own} == own
    assert sum(spot.is_typed for band in found.bands for spot in band.spots) == 1


def test_other_quotas_stand_in_their_rows_with_what_is_used() -> None:
    other = resource_quota({"requests.cpu": "8"}, {"requests.cpu": "2"}, name="other")
    found = laid_out(resource_quota({"pods": "3"}, scopeSelector=high("low")), other)
    (row,) = [band for band in found.bands if band.name == ANY]
    told = [(each.quota, each.hard, each.used) for spot in row.spots for each in spot.others]
    assert told == [("other", "8", "2")]
    assert list(found.resources) == ["pods", "requests.cpu"]


def test_what_is_not_counted_yet_of_others_is_unknown() -> None:
    other = resource_quota({"pods": "8", "requests.cpu": "8"}, name="other")
    other["status"] = {"hard": other["spec"]["hard"], "used": {"requests.cpu": "0"}}
    found = laid_out(resource_quota({"pods": "3"}), other)
    told = {each.used for band in found.bands for spot in band.spots for each in spot.others}
    assert told == {"unknown", "0"}


def test_only_legal_limits_are_offered() -> None:
    others = resource_quota({"requests.cpu": "8", "services": "2"}, name="other")
    found = laid_out(resource_quota({"pods": "3"}, scopeSelector=high("low")), others)
    offered = {spot.resource for band in found.bands for spot in band.spots if spot.is_offered}
    assert offered == {"requests.cpu"}


def test_limit_that_is_there_twice_stays_in_the_list() -> None:
    draft = resource_quota({"pods": "3"})
    sheet = quota.show(draft)
    sheet.lines[quota.HARD].append({"resource": "pods", "amount": "4"})
    found = matrix_of(draft, sheet, build_policy_set([], [], namespace="ns"), [])
    assert found is not None
    assert found.lines == {0}


def test_draft_that_cannot_be_read_has_none() -> None:
    draft = resource_quota({"pods": "?"})
    before = build_policy_set([], [], namespace="ns")
    assert matrix_of(draft, quota.show(draft), before, []) is None
    assert matrix_of(None, quota.show(draft), before, []) is None
