"""Progress: on terminals only, and only for long work."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from gatehouse_cli import console
from gatehouse_cli.console import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def shown(on: Terminal, total: int | None = 3) -> str:
    with redirect_stderr(on), progress("testing", total) as advance:
        for _ in range(3):
            advance(1)
    return on.getvalue()


def test_pipe_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("testing") as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


def test_short_work_shows_nothing(terminal: Terminal) -> None:
    assert shown(terminal) == ""


def test_long_work_shows_how_much_is_done(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_PATIENCE", -1)
    text = shown(terminal)
    assert "testing" in text
    assert "3/3" in text


def test_work_of_unknown_length_is_shown_at_once(terminal: Terminal) -> None:
    assert "testing" in shown(terminal, None)


def test_bar_is_gone_after_an_error(terminal: Terminal) -> None:
    def fail() -> None:
        with redirect_stderr(terminal), progress("testing"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.getvalue().endswith("\x1b[2K")  # its line is erased
