"""Every test has a config folder of its own, and none of the variables of a CI system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gatehouse_cli.fake_portal import FakePortal, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VARIABLES = (
    "GATEHOUSE_URL",
    "GATEHOUSE_TOKEN",
    "GATEHOUSE_CERTIFICATE_AUTHORITY",
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
)


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of contexts, which does not exist yet."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "gatehouse" / "config.yaml"


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePortal]:
    """A portal that answers as it is told; the environment names it."""
    with served() as portal:
        monkeypatch.setenv("GATEHOUSE_URL", portal.url)
        monkeypatch.setenv("GATEHOUSE_TOKEN", "t0ken")
        yield portal
