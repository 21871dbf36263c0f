"""docs/reference documents every setting, reason, check and command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from engine.decision import Reason
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
OURS = {"portal", "policies", "sync", "admission", "gatehouse_cli", "engine"}


def words_in_code(pattern: str, *folders: str) -> list[str]:
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    found = {word for path in files for word in re.findall(pattern, path.read_text("utf-8"))}
    return sorted(found)


@pytest.mark.parametrize("name", words_in_code(r"\bGATEHOUSE_[A-Z][A-Z0-9_]*[A-Z0-9]\b", *OURS))
def test_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in (REFERENCE / "settings.md").read_text("utf-8")


@pytest.mark.parametrize("reason", list(Reason))
def test_reason_is_documented(reason: Reason) -> None:
    assert f"`{reason.value}`" in (REFERENCE / "reasons.md").read_text("utf-8")


@pytest.mark.parametrize(
    "check", words_in_code(r"\b(?:portal|policies|admission)\.[WE]\d{3}", *OURS)
)
def test_check_is_documented(check: str) -> None:
    assert f"`{check}`" in (REFERENCE / "checks.md").read_text("utf-8")


def our_commands() -> list[str]:
    return sorted(name for name, app in get_commands().items() if app in OURS)


@pytest.mark.parametrize("command", our_commands())
def test_command_is_documented(command: str) -> None:
    assert f"`{command}`" in (REFERENCE / "commands.md").read_text("utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_subcommand_is_documented(command: str) -> None:
    assert f"`gatehouse {command}" in (REFERENCE / "commands.md").read_text("utf-8")


@pytest.mark.parametrize("code", list(ExitCode))
def test_exit_code_is_documented(code: ExitCode) -> None:
    page = (REFERENCE / "commands.md").read_text("utf-8")
    assert code is ExitCode.INTERRUPTED or f"\n| {code} | " in page
