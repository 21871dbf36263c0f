"""The group of the command line: help, suggestions, exit codes, and what its start imports."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from gatehouse_cli import __version__
from gatehouse_cli.exit_codes import CliError, ExitCode
from gatehouse_cli.main import COMMANDS, gatehouse, run

ROOT = Path(__file__).resolve().parents[2]


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == f"gatehouse, version {__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-h"]) == ExitCode.OK
    listed = capsys.readouterr().out.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines() if line[2] != " "] == list(COMMANDS)


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [(["chnages"], "'changes'"), (["--versin"], "'--version'"), (["--hlp"], "'--help'")],
)
def test_misspelling_is_an_error_with_a_suggestion(
    words: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == ExitCode.ERROR
    assert f"Did you mean {suggestion}?" in capsys.readouterr().err


def test_plugin_of_kubectl_shows_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"], program="kubectl-gatehouse")
    assert capsys.readouterr().out.startswith("Usage: kubectl gatehouse ")


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (CliError("no such context"), ExitCode.ERROR, "gatehouse: no such context\n"),
        (click.UsageError("choose one"), ExitCode.ERROR, "Error: choose one\n"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "\n"),
        (ZeroDivisionError("by hand"), ExitCode.ERROR, "an error of our own: ZeroDivisionError"),
    ],
)
def test_errors_end_with_one_message_and_no_traceback(
    error: BaseException,
    code: ExitCode,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_context: click.Context) -> None:
        raise error

    monkeypatch.setattr(gatehouse, "invoke", fail)
    assert run(["completion", "bash"]) == code
    printed = capsys.readouterr()
    assert (shown in printed.err, "Traceback" in printed.err, printed.out) == (True, False, "")


def test_traceback_is_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_context: click.Context) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(gatehouse, "invoke", fail)
    with pytest.raises(ZeroDivisionError):
        run(["--traceback", "completion", "bash"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_of_its_name_and_has_help(name: str) -> None:
    command = import_module(f"gatehouse_cli.commands.{name}").command
    assert (command.name, bool(command.help)) == (name, True)


def imported_by(words: list[str]) -> set[str]:
    """Top packages in memory after a run of the command in a new process."""
    script = (
        "import sys; from gatehouse_cli.main import run; run(sys.argv[1:]);"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-c", script, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_no_command_imports_what_only_a_server_needs() -> None:
    found = imported_by(["--help"])
    assert "gatehouse_cli" in found
    assert found.isdisjoint({"django", "rest_framework", "celery", "lightkube", "psycopg"})


def test_test_imports_neither_django_nor_what_talks_to_a_portal() -> None:
    examples = str(ROOT / "docs" / "examples")
    found = imported_by(["test", "-f", f"{examples}/limits.yaml", f"{examples}/pod.yaml"])
    assert {"engine", "policies", "yaml"} <= found
    assert found.isdisjoint({"django", "rest_framework", "celery", "lightkube", "httpx2", "rich"})


def test_start_waits_for_no_other_command() -> None:
    assert imported_by(["--version"]).isdisjoint({"rich", "yaml", "engine", "httpx2"})
