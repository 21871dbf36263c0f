"""Which decision is meant, and its story."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli import api_objects

if TYPE_CHECKING:
    from tests.gatehouse_cli.fake_portal import FakePortal

LIST = "/api/v1/decisions/"
COMPUTE = {"kind": "ResourceQuota", "namespace": "team", "name": "compute", "revision": 3}
VIOLATION = {
    "reason": "ExceededQuota",
    "field": "spec.containers[0]",
    "message": "exceeded quota: compute",
    "policy": COMPUTE,
    "rule": None,
    "numbers": {},
}


def whole(decision_id: str = "0123456789abcdef", **members: Any) -> dict[str, Any]:
    parts = {
        "violations": [VIOLATION],
        "observed": [],
        "trace": [
            {
                "name": "quota",
                "outcome": "denied",
                "policy": COMPUTE,
                "rule": None,
                "detail": "4 of 4",
                "numbers": {},
            }
        ],
        "patch": [{"op": "add", "path": "/metadata/labels/a", "value": "b"}],
        "charges": [{"quota": COMPUTE, "delta": {"pods": "1"}, "amounts": {"pods": "1"}}],
    }
    return {**api_objects.decision(id=decision_id), **parts, **members}


EXPLANATION = {
    "decision": "0123456789abcdef",
    "sentence": "bob asked to create Pod web-1 and was refused.",
    "is_of_then": True,
    "today": {"allowed": True, "message": "", "violations": [], "differs": True},
    "suggestions": [
        {
            "passes_today": True,
            "changes": [{"field": "spec.replicas", "before": "4", "after": ""}],
        }
    ],
    "deciding": [
        {
            **COMPUTE,
            "revision": 12,
            "user": "anna",
            "created": "2026-01-01T00:00:00Z",
            "reason": "less room",
            "changes": ["pods lowered from 10 to 4"],
        }
    ],
    "since": [],
}


@pytest.fixture(autouse=True)
def _explained(portal: FakePortal) -> None:
    for decision_id in ("0123456789abcdef", "0000000000000002"):
        portal.answer(f"{LIST}{decision_id}/", whole(decision_id))
        portal.answer(f"{LIST}{decision_id}/explanation/", EXPLANATION)


def chosen(portal: FakePortal) -> str:
    """The decision that was explained."""
    return portal.asked[-1].path.split("/")[-3]


def test_story_of_a_decision(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "0123456789abcdef"]) == ExitCode.OK
    words = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert words[0].startswith("decision 0123456789abcdef: denied, 2026-01-01 00:00:00 UTC, ")
    assert words[1] == EXPLANATION["sentence"]
    for line in (
        "ExceededQuota at spec.containers[0]",
        "exceeded quota: compute",
        "by ResourceQuota team/compute, revision 3",
        "1. ResourceQuota team/compute, revision 3 denied 4 of 4",
        'add /metadata/labels/a = "b"',
        "ResourceQuota team/compute, revision 3: pods 1",
        "The smallest change that would have passed",
        "1. (passes today)",
        "spec.replicas: 4 → nothing",
        "it would be allowed, unlike then",
    ):
        assert line in words
    assert "pods lowered from 10 to 4" in words[-1]


def test_decision_may_be_named_as_get_names_it() -> None:
    assert run(["why", "decision/0123456789abcdef"]) == ExitCode.OK


def test_json_holds_both_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "0123456789abcdef", "-o", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {**whole(), "explanation": EXPLANATION}


def test_newest_refusal_of_the_very_name_is_chosen(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(
        LIST,
        api_objects.decision("web-10", id="0000000000000001"),
        api_objects.decision("web-1", "allowed", id="0000000000000003"),
        api_objects.decision("web-1", "denied", id="0000000000000002"),
    )
    assert run("why pod/web-1 -n team --cluster prod".split()) == ExitCode.OK
    assert chosen(portal) == "0000000000000002"
    assert portal.asked[0].query == {
        "name": "web-1",
        "kind": "Pod",
        "namespace": "team",
        "cluster": "prod",
        "limit": "50",
    }
    assert "also on record: 0000000000000001 denied Pod team/web-10" in capsys.readouterr().err


def test_beginning_of_a_name_is_enough(portal: FakePortal) -> None:
    portal.page(LIST, api_objects.decision("web-5d8f-", id="0000000000000002"))
    assert run(["why", "web"]) == ExitCode.OK
    assert chosen(portal) == "0000000000000002"


def test_without_a_refusal_the_newest_decision_is_told(portal: FakePortal) -> None:
    portal.page(
        LIST,
        api_objects.decision("web-1", "mutated", id="0000000000000002"),
        api_objects.decision("web-1", "allowed", id="0000000000000003"),
    )
    assert run(["why", "web-1"]) == ExitCode.OK
    assert chosen(portal) == "0000000000000002"


@pytest.mark.parametrize(
    ("word", "kind"),
    [("deploy/web", "Deployment"), ("pods/web", "Pod"), ("Widget/web", "Widget")],
)
def test_kinds_are_named_as_in_kubectl(portal: FakePortal, word: str, kind: str) -> None:
    portal.page(LIST, api_objects.decision("web", id="0000000000000002"))
    assert run(["why", word]) == ExitCode.OK
    assert portal.asked[0].query["kind"] == kind


def test_unknown_name_is_an_error(portal: FakePortal, capsys: pytest.CaptureFixture[str]) -> None:
    portal.page(LIST)
    assert run("why web -n team".split()) == ExitCode.ERROR
    assert capsys.readouterr().err == (
        'gatehouse: there is no decision about "web" in namespace team that you may see\n'
    )


def test_a_name_as_long_as_an_id_is_a_name_if_there_is_no_such_id(portal: FakePortal) -> None:
    portal.page(LIST, api_objects.decision("webwebwebwebweb1", id="0000000000000002"))
    assert run(["why", "webwebwebwebweb1"]) == ExitCode.OK
    assert chosen(portal) == "0000000000000002"


def test_a_record_that_tells_too_little_is_said_to(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answers[("GET", f"{LIST}0123456789abcdef/explanation/")].clear()
    portal.answer(f"{LIST}0123456789abcdef/explanation/", {**EXPLANATION, "today": None})
    assert run(["why", "0123456789abcdef"]) == ExitCode.OK
    assert "unknown: the record tells too little" in capsys.readouterr().out


def test_plugin_of_kubectl_tells_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "0123456789abcdef"], program="kubectl-gatehouse") == ExitCode.OK
    assert "decision 0123456789abcdef" in capsys.readouterr().out
