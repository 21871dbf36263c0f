"""What an editor tells about a draft: hints with a pod that shows each, and any object's fate."""

from __future__ import annotations

from typing import Any

import pytest

from engine.decision import Reason
from policies.drafts import preview
from policies.drafts.draft import PolicyPlace
from policies.drafts.kinds import BY_NAME
from policies.lints import LintCode
from policies.manifests.sources import parse_documents
from tests import factories

pytestmark = pytest.mark.django_db
LOW = {"type": "Container", "min": {"cpu": "2"}}
HIGH = {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}
POD = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"


def place(kind: str, name: str = "") -> PolicyPlace:
    return PolicyPlace(
        kind=BY_NAME[kind],
        cluster=factories.cluster(),
        namespace=factories.namespace(),
        name=name,
    )


def draft(kind: str, spec: dict[str, Any], name: str = "draft") -> dict[str, Any]:
    return factories.manifest(kind, spec, name=name)


def hints_of(kind: str, spec: dict[str, Any]) -> dict[str, preview.Hint]:
    where = place(kind)
    found = preview.hints(where, draft(kind, spec), preview.load(where))
    return {hint.lint.code: hint for hint in found}


@pytest.mark.parametrize(
    ("kind", "spec", "code", "reason"),
    [
        ("LimitRange", {"limits": [HIGH]}, LintCode.UNSATISFIABLE_RANGES, Reason.MIN_CONSTRAINT),
        (
            "ResourceQuota",
            {"hard": {"limits.cpu": "4"}},
            LintCode.LIMITS_WITHOUT_DEFAULT,
            Reason.MUST_SPECIFY,
        ),
    ],
    ids=["ranges", "no_default"],
)
def test_hint_brings_a_pod_that_shows_it(
    kind: str, spec: dict[str, Any], code: LintCode, reason: Reason
) -> None:
    factories.limit_range(LOW, name="low")
    hint = hints_of(kind, spec)[code]
    assert hint.is_new
    where = place(kind)
    [document] = parse_documents(hint.example, "example")
    after = preview.simulation.with_unsaved(preview.load(where), [draft(kind, spec)])
    decision = preview.judge(after, document.value)
    assert reason in {each.reason for each in decision.violations}
    assert hint.message == decision.message


def test_pod_of_a_class_shows_what_a_scope_leaves_open() -> None:
    factories.priority_class("high")
    factories.priority_class("low")
    both = {"scopeName": "PriorityClass", "operator": "In", "values": ["high", "low"]}
    factories.limited_resources({"resource": "pods", "matchScopes": [both]})
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    spec = {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [scope]}}
    hint = hints_of("ResourceQuota", spec)[LintCode.UNCOVERED_SCOPE_VALUE]
    [document] = parse_documents(hint.example, "example")
    assert document.value["spec"]["priorityClassName"] == "low"


def test_what_is_known_is_told_of_the_draft_only() -> None:
    factories.limit_range(LOW, name="low")
    factories.limit_range(HIGH, name="high")
    other = draft("LimitRange", {"limits": [{"type": "Pod", "max": {"cpu": "8"}}]}, name="other")
    assert preview.hints(place("LimitRange"), other, preview.load(place("LimitRange"))) == []
    same = draft("LimitRange", {"limits": [LOW]}, name="low")
    found = preview.hints(place("LimitRange", "low"), same, preview.load(place("LimitRange")))
    assert {hint.is_new for hint in found} == {False}


@pytest.mark.parametrize(
    "text",
    ["a: [", "", f"{POD}---\n{POD}", "[1]"],
    ids=["broken", "nothing", "two", "no_object"],
)
def test_what_is_no_object_is_told_so_and_judged_by_nobody(text: str) -> None:
    found = preview.tried(
        draft("LimitRange", {"limits": [LOW]}), preview.load(place("LimitRange")), text
    )
    assert list(found) == ["try_error"]
    assert found["try_error"]


def test_object_that_no_server_reads_is_refused_by_both() -> None:
    pod = POD.replace("image: i", "resources: {limits: {cpu: x}}")
    stored = preview.load(place("LimitRange"))
    found = preview.tried(draft("LimitRange", {"limits": [LOW]}), stored, pod)
    assert [found[name].code for name in ("verdict", "verdict_now")] == [400, 400]


def test_draft_that_cannot_be_read_judges_nothing() -> None:
    broken = draft("LimitRange", {"limits": [{"type": "Container", "min": {"cpu": "x"}}]})
    assert list(preview.tried(broken, preview.load(place("LimitRange")), POD)) == ["try_error"]


def test_what_belongs_to_no_namespace_tries_no_object() -> None:
    assert preview.tried({}, None, POD) == {}
