"""``make run`` that cannot start prints one line with the reason and a remedy."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def run(var: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    around = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    around |= {"GATEHOUSE_ENV_FILE": os.devnull, "GATEHOUSE_VAR": str(var), **settings}
    command = [sys.executable, "-m", "portal.dev.run", *words]
    return subprocess.run(  # noqa: S603 - our own words
        command, env=around, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.servers
def test_port_in_use_is_reported_with_another(tmp_path: Path, taken_port: int) -> None:
    line = said(run(tmp_path, "--port", str(taken_port)))
    assert line.startswith(f"gatehouse: port {taken_port} of 127.0.0.1 cannot be used")
    assert line.endswith(f"run: make run PORT={min(taken_port + 1, 65535)}")


@pytest.mark.servers
def test_second_run_names_the_first(tmp_path: Path) -> None:
    with (tmp_path / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        line = said(run(tmp_path))
    assert line.startswith(f"gatehouse: a portal runs on {tmp_path} already (process 4711)")
    assert line.endswith("kill 4711")


@pytest.mark.servers
def test_lock_of_a_process_that_is_gone_is_no_hindrance(tmp_path: Path, taken_port: int) -> None:
    (tmp_path / "run.lock").write_text("4711")
    assert "cannot be used" in said(run(tmp_path, "--port", str(taken_port)))


@pytest.mark.servers
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GATEHOUSE_DEBUG", "maybe", "GATEHOUSE_DEBUG is 'maybe': write true or false"),
        ("GATEHOUSE_LISTEN_PRT", "1", "did you mean GATEHOUSE_LISTEN_PORT?"),
        ("GATEHOUSE_LISTEN_PORT", "http", "write a number from 1 to 65535"),
        ("GATEHOUSE_DATABASE_URL", "mysql://h/n", "write postgres://"),
        ("GATEHOUSE_SECRET_KEY_FILE", "/nowhere", "points at /nowhere: No such file"),
        ("GATEHOUSE_ENV_FILE", __file__, "test_run.py, line 1 is not NAME=value"),
        ("GATEHOUSE_TLS_CERTIFICATE", __file__, "GATEHOUSE_TLS_KEY go together: set both"),
        ("GATEHOUSE_TLS_KEY", __file__, "GATEHOUSE_TLS_KEY go together: set both"),
        ("GATEHOUSE_TLS_CLIENT_CA", __file__, "set GATEHOUSE_TLS_CERTIFICATE, too"),
    ],
)
def test_wrong_setting_is_named_and_stops_the_start(
    tmp_path: Path, name: str, value: str, expected: str
) -> None:
    assert expected in said(run(tmp_path, **{name: value}))


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "GATEHOUSE_VAR" in said(run(tmp_path / "file" / "var"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.servers
def test_database_that_does_not_answer_is_reported_without_its_password(tmp_path: Path) -> None:
    address = f"postgres://u:hunter2@127.0.0.1:{free_port()}/n"
    settings = {"GATEHOUSE_DATABASE_URL": address, "GATEHOUSE_BROKER_URL": "redis://127.0.0.1:1/0"}
    line = said(run(tmp_path, "--port", str(free_port()), **settings))
    assert line.startswith("gatehouse: the database does not answer")
    assert line.endswith("start it, or correct GATEHOUSE_DATABASE_URL")
    assert "hunter2" not in line


def test_wrong_setting_stops_every_command(tmp_path: Path) -> None:
    around = {**os.environ, "GATEHOUSE_VAR": str(tmp_path), "GATEHOUSE_X": "1"}
    for words in (["manage.py", "check"], ["-m", "celery", "-A", "portal.celery", "report"]):
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, *words], env=around, cwd=ROOT, capture_output=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.startswith(b"gatehouse: GATEHOUSE_X is not a setting")
