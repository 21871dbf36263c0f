"""A database that came back without its secret key says so, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from policies.models import KeyCheck
from portal.health import key_check
from portal.serving import application

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def restored(settings: Any) -> None:
    """A database whose key was another one."""
    key_check.ensure()
    settings.GATEHOUSE_KEY_PEPPER = "another"


def test_key_that_fits_is_no_problem() -> None:
    assert key_check.problem() == ""
    assert key_check.ensure() == ""
    assert key_check.ensure() == ""
    assert KeyCheck.objects.count() == 1


def test_key_itself_is_not_kept(settings: Any) -> None:
    key_check.ensure()
    assert settings.GATEHOUSE_KEY_PEPPER not in KeyCheck.objects.get().value


@pytest.mark.usefixtures("restored")
def test_other_key_is_told_by_ready_probe_which_stays_ready(client: Client) -> None:
    answer = client.get("/readyz?verbose")
    assert answer.status_code == 200
    assert "[!]key" in answer.content.decode()


@pytest.mark.usefixtures("restored")
def test_other_key_is_told_at_home(admin_client: Client) -> None:
    assert 'id="key-problem"' in admin_client.get("/").content.decode()


@pytest.mark.usefixtures("restored")
def test_other_key_is_told_at_the_start_until_it_is_accepted(capsys: Any) -> None:
    call_command("bootstrap", verbosity=0)
    assert "--accept-key" in capsys.readouterr().err
    call_command("bootstrap", "--accept-key", verbosity=0)
    assert "--accept-key" not in capsys.readouterr().err
    assert key_check.problem() == ""


@pytest.mark.usefixtures("restored")
def test_other_key_is_logged_by_each_web_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("policies.snapshot.start", lambda: None)
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)
    application.begin()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_home_is_silent_where_the_key_fits(admin_client: Client) -> None:
    key_check.ensure()
    assert 'id="key-problem"' not in admin_client.get("/").content.decode()
