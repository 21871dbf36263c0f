"""Problems of background work and of the secret key: in metrics, in probes and on Home."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from prometheus_client import REGISTRY

from admission import tasks
from admission.metrics import begin_at_zero
from admission.models import BackgroundWork, note_work
from admission.record import export
from policies.models import KeyCheck
from portal.celery import note_beat
from portal.health import problems
from portal.serving import application
from portal.tasks import note_worker

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
NAME = BackgroundWork.Name


def gauge(client: Client, family: str, name: str) -> float | None:
    for line in client.get("/metrics").content.decode().splitlines():
        if line.startswith(f'gatehouse_background_{family}{{name="{name}"}}'):
            return float(line.rpartition(" ")[2])
    return None


@pytest.fixture(autouse=True)
def _connections_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's transaction is on the one that beat would close."""
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)


def test_heartbeats_have_an_age_once_they_were_seen(client: Client) -> None:
    assert gauge(client, "age_seconds", "worker") is None
    note_worker()
    note_beat("portal.tasks.note_worker")
    ages = [gauge(client, "age_seconds", name) for name in ("worker", "beat")]
    assert all(age is not None and 0 <= age < 60 for age in ages)


def test_other_tasks_are_no_heartbeat_of_beat() -> None:
    note_beat("portal.tasks.clear_expired")
    assert not BackgroundWork.objects.exists()


def test_failures_are_shown_before_the_first(client: Client) -> None:
    assert gauge(client, "failed", "export") == 0


def test_export_that_fails_is_seen_until_one_succeeds(
    client: Client, admin_client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.GATEHOUSE_RETENTION_ALLOWED_DAYS = 30

    def fail(*_: object, **__: object) -> list[Any]:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(export, "due", fail)
        tasks.export_record()
    assert gauge(client, "failed", "export") == 1
    assert "Read-only file system" in admin_client.get("/").content.decode()
    monkeypatch.setattr(export, "due", lambda **_: [])
    tasks.export_record()
    assert gauge(client, "failed", "export") == 0


def test_late_worker_is_a_problem() -> None:
    note_work(NAME.WORKER)
    assert problems.background_problems() == []
    BackgroundWork.objects.update(seen=timezone.now() - timedelta(seconds=problems.LATE + 1))
    assert len(problems.background_problems()) == 1


def test_counters_begin_at_zero() -> None:
    begin_at_zero(["a-new-cluster"])
    labels = {"cluster": "a-new-cluster", "phase": "mutate", "verdict": "denied"}
    name = "gatehouse_admission_decisions_total"
    assert REGISTRY.get_sample_value(name, {**labels, "dry_run": "false"}) == 0


@pytest.fixture
def restored(settings: Any) -> None:
    """A database whose key was another one."""
    problems.keep_key_check()
    settings.GATEHOUSE_KEY_PEPPER = "another"


def test_key_that_fits_is_no_problem() -> None:
    assert problems.key_problem() == ""
    assert problems.keep_key_check() == ""
    assert problems.keep_key_check() == ""
    assert KeyCheck.objects.count() == 1


def test_key_itself_is_not_kept(settings: Any) -> None:
    problems.keep_key_check()
    assert settings.GATEHOUSE_KEY_PEPPER not in KeyCheck.objects.get().value


@pytest.mark.usefixtures("restored")
def test_other_key_is_reported_by_ready_probe_which_stays_ready(client: Client) -> None:
    answer = client.get("/readyz?verbose")
    assert answer.status_code == 200
    assert "[!]key" in answer.content.decode()


@pytest.mark.usefixtures("restored")
def test_other_key_is_shown_on_home(admin_client: Client) -> None:
    assert "he secret key is not the one" in admin_client.get("/").content.decode()


@pytest.mark.usefixtures("restored")
def test_other_key_is_reported_at_each_start_until_it_is_accepted(capsys: Any) -> None:
    call_command("bootstrap", verbosity=0)
    assert "--accept-key" in capsys.readouterr().err
    call_command("bootstrap", "--accept-key", verbosity=0)
    assert "--accept-key" not in capsys.readouterr().err
    assert problems.key_problem() == ""


@pytest.mark.usefixtures("restored")
def test_other_key_is_logged_by_each_web_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("policies.snapshot.start", lambda: None)
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)
    application.begin()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_home_is_silent_where_the_key_fits(admin_client: Client) -> None:
    problems.keep_key_check()
    assert "he secret key is not the one" not in admin_client.get("/").content.decode()
