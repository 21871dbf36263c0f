"""Which portal a command talks to: --context, the environment, the current context."""

from __future__ import annotations

import click
import pytest

from gatehouse_cli import contexts
from gatehouse_cli.connection import Connection, choose_context
from gatehouse_cli.contexts import Context, Contexts
from gatehouse_cli.exit_codes import CliError

PROD = Context(name="prod", url="https://a.example", token="t1", cluster="east")
TEST = Context(name="test", url="https://b.example", token="t2")


@pytest.fixture
def _stored() -> None:
    contexts.save(Contexts("prod", (PROD, TEST)))


@pytest.mark.usefixtures("_stored")
def test_the_current_context_is_the_default() -> None:
    assert choose_context("") == PROD


@pytest.mark.usefixtures("_stored")
def test_the_environment_comes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEHOUSE_URL", "https://ci.example")
    monkeypatch.setenv("GATEHOUSE_TOKEN", "t3")
    monkeypatch.setenv("GATEHOUSE_CERTIFICATE_AUTHORITY", "/ca.pem")
    assert choose_context("") == Context(
        name="environment",
        url="https://ci.example",
        token="t3",
        certificate_authority="/ca.pem",
    )


@pytest.mark.usefixtures("_stored")
def test_a_context_on_the_command_line_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEHOUSE_URL", "https://ci.example")
    monkeypatch.setenv("GATEHOUSE_TOKEN", "t3")
    assert choose_context("test") == TEST


@pytest.mark.usefixtures("_stored")
@pytest.mark.parametrize("name", ["GATEHOUSE_URL", "GATEHOUSE_TOKEN"])
def test_half_an_environment_never_meets_a_stored_token(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "https://evil.example")
    with pytest.raises(CliError, match="set both GATEHOUSE_URL and GATEHOUSE_TOKEN, or neither"):
        choose_context("")


def test_without_any_the_way_on_is_named() -> None:
    with pytest.raises(CliError, match="run: gatehouse login URL"):
        choose_context("")


def test_cluster_comes_from_the_command_line_or_the_context() -> None:
    assert Connection(PROD).require_cluster("west") == "west"
    assert Connection(PROD).require_cluster("") == "east"
    with pytest.raises(click.UsageError, match="--cluster"):
        Connection(TEST).require_cluster("")
