from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from portal.health import views

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget() -> None:
    views.migrated.clear()


def no_cursor() -> None:
    raise OperationalError


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_probe_says_ok_under_any_host(client: Client, path: str) -> None:
    answer = client.get(path, headers={"host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.content) == (200, b"ok")
    assert answer["Content-Type"].startswith("text/plain")


def test_verbose_probe_lists_its_checks(client: Client) -> None:
    answer = client.get("/readyz?verbose&exclude=database")
    lines = [f"[+]{name} ok" for name in ("ping", "migrations", "policies", "shutdown")]
    assert answer.content.decode().splitlines() == [*lines, "readyz check passed"]


def test_readiness_checks_migrations_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.get("/readyz")
    monkeypatch.setattr(views, "MigrationExecutor", None)
    assert client.get("/readyz").status_code == 200


def test_missing_migration_is_reported(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views.MigrationExecutor, "migration_plan", lambda *_: [1, 2])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "[-]migrations failed: 2 to be applied: run manage.py migrate" in answer.content.decode()


def test_database_that_does_not_answer_stops_reviews_but_not_the_process(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views.connection, "cursor", no_cursor)
    ready, live = client.get("/readyz"), client.get("/livez")
    assert (ready.status_code, live.status_code) == (503, 200)
    assert "[-]database failed: no answer\n" in ready.content.decode()


def test_migrations_are_unknown_while_the_database_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(views, "MigrationExecutor", lambda _: no_cursor())
    assert views.check_migrations() == "no answer"


def test_ready_waits_for_the_policies(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views.snapshot, "current", no_cursor)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "[-]policies failed: not read yet\n" in answer.content.decode()


def test_portal_that_stops_is_live_and_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        views.graceful_shutdown, "state", views.graceful_shutdown.ShutdownState(is_stopping=True)
    )
    ready, live = client.get("/readyz"), client.get("/livez")
    assert (ready.status_code, live.status_code) == (503, 200)
    assert "[-]shutdown failed: the portal stops\n" in ready.content.decode()


def test_metrics_are_in_prometheus_words(client: Client) -> None:
    import_module("admission.metrics")  # as loading the addresses does
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert b"# TYPE gatehouse_admission_decisions_total counter" in answer.content


@pytest.mark.parametrize(
    ("header", "status"),
    [({}, 401), ({"authorization": "Bearer wrong"}, 401), ({"authorization": "Bearer right"}, 200)],
    ids=["none", "wrong", "right"],
)
def test_metrics_ask_for_their_token(
    client: Client, settings: Any, header: dict[str, str], status: int
) -> None:
    settings.GATEHOUSE_METRICS_TOKEN = "right"
    assert client.get("/metrics", headers=header).status_code == status


def test_metrics_of_several_processes_are_added_up(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    # Counts of this process are not in the folder; metrics of the database are still reported.
    content = client.get("/metrics").content
    assert b"gatehouse_admission" not in content
    assert b"gatehouse_cluster_alerts" in content
    assert b"gatehouse_rollouts" in content
