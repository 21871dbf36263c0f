"""Signing in: the token is tried before it is stored."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from gatehouse_cli import contexts
from gatehouse_cli.contexts import Context, Contexts
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gatehouse_cli.fake_portal import FakePortal


@pytest.fixture(autouse=True)
def _typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("t0ken\n"))


def login(url: str, *more: str) -> int:
    return run(["login", url, "--token-stdin", *more])


def test_accepted_token_is_stored_and_in_use(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page("/api/v1/clusters/", {"name": "east"})
    assert login(portal.url, "--name", "work", "--cluster", "east") == ExitCode.OK
    context = Context(name="work", url=portal.url, token="t0ken", cluster="east")
    assert contexts.load() == Contexts("work", (context,))
    assert portal.asked[0].headers["Authorization"] == "Token t0ken"
    printed = capsys.readouterr()
    assert ("t0ken" in printed.out + printed.err, printed.out) == (False, "")


def test_context_has_the_name_of_the_host(portal: FakePortal) -> None:
    portal.page("/api/v1/clusters/")
    login(portal.url)
    assert contexts.load().current == portal.url.removeprefix("http://")


def test_refused_token_is_not_stored(
    portal: FakePortal, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.refuse("/api/v1/clusters/", 401, detail="Invalid token.")
    assert login(portal.url) == ExitCode.ERROR
    assert "refuses the token; nothing was stored" in capsys.readouterr().err
    assert not config.exists()


def test_unknown_cluster_is_not_stored(
    portal: FakePortal, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page("/api/v1/clusters/", {"name": "east"})
    portal.page("/api/v1/clusters/")
    portal.page("/api/v1/clusters/", {"name": "east"})
    assert login(portal.url, "--cluster", "esat") == ExitCode.ERROR
    assert 'there is no cluster "esat"; did you mean east?' in capsys.readouterr().err
    assert not config.exists()


def test_a_pipe_without_the_option_is_not_read(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["login", portal.url]) == ExitCode.ERROR
    assert "--token-stdin" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["\n", "tök\n", "a\tb\n"])
def test_what_is_no_token_is_not_sent(
    portal: FakePortal, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(token))
    assert login(portal.url) == ExitCode.ERROR
    assert portal.asked == []


def test_plain_http_to_another_machine_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert login("http://gatehouse.invalid") == ExitCode.ERROR
    assert "has no TLS; the token travels as plain text" in capsys.readouterr().err
