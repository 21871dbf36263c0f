"""The containers' commands as plain processes against a real PostgreSQL and Redis."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from ruamel.yaml import YAML

from tests.processes import ROOT, free_port, running, status_of, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
INSERT = "INSERT INTO django_session (session_key, session_data, expire_date) VALUES (%s, '', %s)"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "docker-compose.yml")
    return loaded["services"]  # type: ignore[no-any-return] # YAML has no types


def dockerfile(instruction: str) -> str:
    """The argument of the last such instruction of the image."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    found = [line.split(None, 1)[1] for line in text.splitlines() if line.startswith(instruction)]
    return found[-1]


@pytest.fixture(scope="module")
def web_words() -> list[str]:
    """The default command of the image."""
    words: list[str] = json.loads(dockerfile("CMD "))
    return words


@pytest.fixture(scope="module")
def probe_words() -> list[str]:
    """The command of the image's health check."""
    words: list[str] = json.loads(dockerfile("HEALTHCHECK ").partition("CMD ")[2])
    return words


@pytest.fixture
def environment(
    surroundings: dict[str, str],
    tmp_path: Path,
    postgres_address: str,
    redis_address: tuple[str, str],
) -> dict[str, str]:
    """Secrets in files, as in the compose file."""
    address, password = redis_address
    contents = {
        "GATEHOUSE_DATABASE_URL": postgres_address,
        "GATEHOUSE_SECRET_KEY": "k" * 60,
        "GATEHOUSE_BROKER_PASSWORD": password,
        "GATEHOUSE_ADMIN_PASSWORD": "a long password",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content + "\n")
        surroundings[f"{name}_FILE"] = str(tmp_path / name)
    plain = {"GATEHOUSE_BROKER_URL": address, "GATEHOUSE_EXTERNAL_URL": "http://127.0.0.1:8000"}
    return {**surroundings, **plain}


@pytest.fixture(scope="module", autouse=True)
def _static_files() -> None:
    """The static files that the image's build collects: a clean checkout has none.

    Under a lock shared with concurrent tests that start portals from this checkout.
    """
    collect = (
        "import django; django.setup()\n"
        "from portal.dev.supervisor.preparation import collect_static; collect_static()"
    )
    around = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "GATEHOUSE_ENV_FILE": os.devnull,
        "GATEHOUSE_SECRET_KEY": "k" * 60,
    }
    words = [sys.executable, "-c", collect]
    subprocess.run(words, env=around, cwd=ROOT, check=True, timeout=300)  # noqa: S603 - our own words


def placed(words: list[str], folder: Path) -> list[str]:
    """The container's command with this machine's folder."""
    return [word.replace("/tmp/", f"{folder}/") for word in words]  # noqa: S108 - the container's


@pytest.fixture
def bootstrapped(compose: dict[str, Any], environment: dict[str, str]) -> dict[str, str]:
    for _ in range(2):  # the second run finds everything done
        words = compose["bootstrap"]["command"]
        subprocess.run(words, env=environment, cwd=ROOT, check=True, timeout=120)  # noqa: S603 - our own file
    return environment


@pytest.fixture
def start(tmp_path: Path, bootstrapped: dict[str, str]) -> Iterator[Callable[..., Any]]:
    from contextlib import ExitStack  # noqa: PLC0415 - only here

    with ExitStack() as stack:
        yield lambda name, words: stack.enter_context(
            running(words, bootstrapped, tmp_path / f"{name}.log")
        )


def test_web_answers_probes_and_counts_for_both_of_its_processes(
    web_words: list[str],
    probe_words: list[str],
    start: Callable[..., Any],
    bootstrapped: dict[str, str],
) -> None:
    port = free_port()
    bootstrapped |= {"GATEHOUSE_LISTEN_PORT": str(port), "GATEHOUSE_WEB_WORKERS": "2"}
    bootstrapped |= dict([dockerfile("ENV GATEHOUSE_").split("=")])
    start("web", web_words)
    wait_for(lambda: status_of(port, "/readyz") == 200)
    subprocess.run(probe_words, env=bootstrapped, cwd=ROOT, check=True)  # noqa: S603 - our own file
    assert [status_of(port, f"/{path}") for path in ("livez", "healthz", "metrics")] == [200] * 3
    assert status_of(port, "/accounts/login/") == 200
    assert [status_of(port, "/admission/a/mutate", "POST") for _ in range(20)] == [401] * 20
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b'gatehouse_admission_refused_total{status="401"} 20.0\n' in answer.read()


def test_first_admin_has_the_password_of_the_file(bootstrapped: dict[str, str]) -> None:
    code = (
        "import django; django.setup()\n"
        "from django.contrib.auth import authenticate\n"
        "assert authenticate(username='admin', password='a long password').is_superuser"
    )
    around = {**bootstrapped, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    subprocess.run([sys.executable, "-c", code], env=around, cwd=ROOT, check=True)  # noqa: S603 - our own words


def test_worker_runs_queued_tasks(
    compose: dict[str, Any],
    start: Callable[..., Any],
    bootstrapped: dict[str, str],
    postgres_address: str,
) -> None:
    start("worker", compose["worker"]["command"])
    probe = compose["worker"]["healthcheck"]["test"][1:]
    around = {"env": bootstrapped, "cwd": ROOT}
    wait_for(lambda: not subprocess.run(probe, check=False, **around).returncode)  # noqa: S603 - our own file
    with psycopg.connect(postgres_address, autocommit=True) as database:
        expired = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        database.execute(INSERT, ["expired", expired])
        call = [sys.executable, "-m", "celery", "-A", "portal.celery", "call"]
        subprocess.run(  # noqa: S603 - our own words
            [*call, "portal.tasks.clear_expired"], env=bootstrapped, cwd=ROOT, check=True
        )
        count = "SELECT count(*) FROM django_session"
        wait_for(lambda: database.execute(count).fetchone() == (0,))


def test_beat_queues_due_tasks(
    compose: dict[str, Any], start: Callable[..., Any], tmp_path: Path
) -> None:
    process = start("beat", placed(compose["beat"]["command"], tmp_path))
    wait_for(lambda: b"beat: Starting" in (tmp_path / "beat.log").read_bytes())
    wait_for(lambda: any(tmp_path.glob("beat-schedule*")))
    assert process.poll() is None


def test_server_is_fit_for_decisions(bootstrapped: dict[str, str]) -> None:
    words = [sys.executable, "manage.py", "check", "--database", "default"]
    words += ["--fail-level", "WARNING"]
    subprocess.run(words, env=bootstrapped, cwd=ROOT, check=True)  # noqa: S603 - our own words
