"""The file of contexts: who may read it, what it holds, and what is no such file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gatehouse_cli import contexts
from gatehouse_cli.contexts import Context, Contexts
from gatehouse_cli.exit_codes import CliError

if TYPE_CHECKING:
    from pathlib import Path

PROD = Context(name="prod", url="https://a.example", token="t1", cluster="east")
TEST = Context(name="test", url="https://b.example", token="t2", certificate_authority="/ca.pem")


def test_what_is_saved_is_loaded(config: Path) -> None:
    contexts.save(Contexts("test", (PROD, TEST)))
    assert contexts.load() == Contexts("test", (PROD, TEST))
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in config.parent.iterdir()] == ["config.yaml"]


def test_the_newest_context_is_in_use_and_replaces_one_of_its_name() -> None:
    again = Context(name="prod", url="https://c.example", token="t3")
    assert Contexts("test", (PROD, TEST)).with_current(again) == Contexts("prod", (TEST, again))


def test_without_a_file_there_are_no_contexts() -> None:
    assert contexts.load() == Contexts()


def test_a_token_is_never_shown() -> None:
    assert "t1" not in repr(Contexts("prod", (PROD,)))


def test_a_relative_config_folder_is_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert contexts.config_path() == tmp_path / ".config" / "gatehouse" / "config.yaml"


def test_a_misspelt_name_gets_the_closest() -> None:
    with pytest.raises(CliError, match=r'no context "prdo" in .*; did you mean prod\?$'):
        Contexts("prod", (PROD, TEST)).named("prdo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contexts: [", "no file of contexts"),
        ("context: []", 'unknown field "context"; known: current-context, contexts'),
        ("contexts: [{name: a, url: b, tokn: c}]", 'unknown field "tokn"'),
        ("contexts: [{name: a, url: b}]", "'token'"),
        ("- a", "no file of contexts"),
        ("contexts: 3", "no file of contexts"),
    ],
)
def test_what_is_no_file_of_contexts_is_refused(config: Path, text: str, message: str) -> None:
    config.parent.mkdir(parents=True)
    config.touch(mode=0o600)
    config.write_text(text, encoding="utf-8")
    with pytest.raises(CliError, match=message):
        contexts.load()


def test_a_file_that_others_may_read_is_refused(config: Path) -> None:
    contexts.save(Contexts("prod", (PROD,)))
    config.chmod(0o640)
    with pytest.raises(CliError, match="others may read it; run: chmod 600"):
        contexts.load()


def test_a_folder_that_cannot_be_written_is_an_error(config: Path) -> None:
    config.parent.parent.mkdir()
    config.parent.touch()
    with pytest.raises(CliError, match="File exists"):
        contexts.save(Contexts("prod", (PROD,)))
