"""The past against a portal in this process: objects as they were, and what differs since."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from policies import services
from policies.history import format_instant
from policies.models import ApiToken, LimitRange
from tests import factories, people
from tests.changes import limit

if TYPE_CHECKING:
    from pytest_django.live_server_helper import LiveServer


@pytest.fixture
def then(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """An instant at which a maximum was 1, a quota was there, and a second range was not."""
    _, token = ApiToken.objects.create(user=people.person("ada", "admin"), name="t", access="read")
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", token)
    factories.apply(limit("1"))
    factories.resource_quota({"pods": "10"}, name="compute")
    instant = format_instant(timezone.now())
    factories.apply(limit("2"))
    factories.apply(limit("3", name="second"))
    return str(instant)


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = ExitCode.OK) -> str:
    capsys.readouterr()
    assert run([*words]) == code
    return capsys.readouterr().out


def test_lists_and_single_objects_are_as_they_were(
    then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = printed(capsys, "get", "limits", "--at", then, "-o", "name")
    assert listed == "limitrange/lr\n"
    found = json.loads(printed(capsys, "get", "limits", "lr", "--at", then, "-o", "json"))
    assert found["spec"]["limits"][0]["max"] == {"cpu": "1"}
    assert run(["get", "limits", "second", "--at", then]) == ExitCode.ERROR
    assert f'there is no limitrange "second" at {then}' in capsys.readouterr().err


def test_an_object_that_is_deleted_since_is_described(
    then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    services.delete_policy(policy=LimitRange.objects.get(name="lr"), user="ada")
    told = printed(capsys, "describe", "limits", "lr", "--at", then)
    assert ("cpu: '1'" in told or 'cpu: "1"' in told, "Managed by" in told) == (True, False)
    assert "decides as number" in told
    history = told.partition("Last revisions")[2].strip().splitlines()
    assert [line.split()[0] for line in history] == ["1"]


def test_the_export_of_then_is_what_was_exported_then(
    then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = printed(capsys, "export", "--cluster", "prod")
    now = format_instant(timezone.now())
    factories.apply(limit("9"))
    assert printed(capsys, "export", "--cluster", "prod", "--at", now) == whole
    words = ["export", "--cluster", "prod", "--at", then]
    assert 'cpu: "1"' in printed(capsys, *words)
    narrow = printed(capsys, *words, "--kind", "limits", "-n", "team")
    assert (narrow.count("kind:"), "ResourceQuota" in narrow) == (1, False)
    assert printed(capsys, *words, "-n", "elsewhere") == ""
    assert run([*words, "--kind", "tests"]) == ExitCode.ERROR


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["get", "limits", "--at", "soon"], "  at: "),
        (["get", "limits", "--at", "2999-01-01T00:00Z"], "  at: "),
        (["get", "decisions", "--at", "2026-01-01T00:00Z"], "without --at"),
        (["get", "tests", "--at", "2026-01-01T00:00Z"], "without --at"),
        (["compare", "--from", "soon"], "  from: "),
        (["compare"], "--from"),
    ],
)
def test_instants_that_cannot_be_asked_are_told_by_field(
    then: str, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    capsys.readouterr()
    assert run(words) == ExitCode.ERROR
    assert told in capsys.readouterr().err


def test_two_instants_are_compared_in_words(then: str, capsys: pytest.CaptureFixture[str]) -> None:
    compare = ["compare", "--from", then]
    told = printed(capsys, *compare, "--cluster", "prod", code=ExitCode.FOUND)
    lines = told.splitlines()
    assert "~ LimitRange prod/team/lr" in lines
    assert "+ LimitRange prod/team/second" in lines
    assert "raised from 1 to 2" in told
    whole = json.loads(printed(capsys, *compare, "-o", "json", code=ExitCode.FOUND))
    assert {each["name"] for each in whole["differences"]} >= {"lr", "second"}
    same = printed(capsys, *compare, "--to", then, "--cluster", "prod")
    assert same.splitlines()[0] == "no difference"
    none = printed(capsys, *compare, "--cluster", "prod", "-n", "elsewhere")
    assert none.splitlines()[0] == "no difference"
