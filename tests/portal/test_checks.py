from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pytest
from django.core.checks import run_checks

from portal import checks

if TYPE_CHECKING:
    from pathlib import Path

    from django.core.checks import CheckMessage

POSTGRESQL = {"default": {"ENGINE": "django.db.backends.postgresql"}}


def found(messages: list[CheckMessage]) -> list[str]:
    assert all(message.hint for message in messages), "each says the way out"
    return [str(message.id) for message in messages]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://gatehouse.example.com", ["portal.W001"]),
        ("https://gatehouse.example.com", []),
        ("http://127.0.0.1:8000", []),
        ("http://localhost:8000", []),
        ("http://[::1]:8000", []),
    ],
)
def test_plain_http_is_for_this_machine_only(
    settings: Any, address: str, expected: list[str]
) -> None:
    settings.GATEHOUSE_EXTERNAL_URL = address
    assert found(checks.check_external_url()) == expected


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o600, []), (0o640, ["portal.W002"]), (0o604, ["portal.W002"])]
)
def test_secret_key_that_others_can_read_is_reported(
    settings: Any, tmp_path: Path, mode: int, expected: list[str]
) -> None:
    settings.GATEHOUSE_VAR = tmp_path
    (tmp_path / "secret-key").touch()
    (tmp_path / "secret-key").chmod(mode)
    assert found(checks.check_secret_key_file()) == expected


def test_secret_key_from_elsewhere_is_no_matter(settings: Any, tmp_path: Path) -> None:
    settings.GATEHOUSE_VAR = tmp_path
    assert checks.check_secret_key_file() == []


@pytest.mark.parametrize(
    ("databases", "broker", "expected"),
    [
        (POSTGRESQL, "filesystem://", ["portal.W003"]),
        (POSTGRESQL, "redis://h", []),
        ({"default": {"ENGINE": "django.db.backends.sqlite3"}}, "filesystem://", []),
    ],
)
def test_file_broker_beside_a_database_server_is_reported(
    monkeypatch: pytest.MonkeyPatch, databases: Any, broker: str, expected: list[str]
) -> None:
    from django.conf import settings  # noqa: PLC0415 - the fixture would announce a new database

    monkeypatch.setattr(settings, "DATABASES", databases)
    monkeypatch.setattr(settings, "CELERY_BROKER_URL", broker)
    assert found(checks.check_broker()) == expected


@pytest.mark.parametrize(("hosts", "expected"), [(["*"], ["portal.W004"]), (["a"], [])])
def test_any_host_is_too_many(settings: Any, hosts: list[str], expected: list[str]) -> None:
    settings.ALLOWED_HOSTS = hosts
    assert found(checks.check_allowed_hosts()) == expected


class Server:
    """A database server that answers pg_settings, or does not answer at all."""

    vendor = "postgresql"

    def __init__(self, rows: list[tuple[str, str]], error: type[Exception] | None = None) -> None:
        self.rows, self.error = rows, error

    def cursor(self) -> Server:
        if self.error:
            raise self.error
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, _sql: str, _params: list[Any]) -> None:
        return None

    def fetchall(self) -> list[tuple[str, str]]:
        return self.rows


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server([("fsync", "off"), ("synchronous_commit", "on")]), ["portal.E001"]),
        (Server([("fsync", "on"), ("full_page_writes", "on")]), []),
        (Server([], checks.PoolTimeout), []),
    ],
    ids=["off", "on", "down"],
)
def test_server_that_forgets_is_refused(
    monkeypatch: pytest.MonkeyPatch, server: Server, expected: list[str]
) -> None:
    monkeypatch.setattr(checks, "connections", {"default": server})
    assert found(checks.check_durability(["default"])) == expected


def test_server_is_queried_only_when_the_database_is_checked() -> None:
    assert checks.check_durability(None) == []


@pytest.mark.django_db
def test_checks_pass_as_delivered() -> None:
    ours = [m for m in run_checks(databases=["default"]) if str(m.id).startswith("portal.")]
    assert [m for m in ours if m.id != "portal.W003"] == []
