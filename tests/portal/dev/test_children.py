from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from portal.dev.supervisor.children import Children, commands, environment
from tests.processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
# A group leader that starts another process and writes down its number; SIGTERM ends it at once.
PARENT = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {child!r}])
pathlib.Path({note!r}).write_text(str(child.pid))
time.sleep(60)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)
"""


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.stop()


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_all_are_stopped_together(children: Children) -> None:
    children.start({"one": SLEEP, "two": SLEEP})
    numbers = [process.pid for process in children.running.values()]
    assert children.ended() == []
    children.stop()
    assert not any(is_alive(number) for number in numbers)


def test_what_a_process_started_is_stopped_with_it(children: Children, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = PARENT.format(child=STUBBORN, note=str(note))
    children.start({"parent": [sys.executable, "-c", code]})
    wait_for(lambda: note.exists() and note.read_text())
    children.stop()
    wait_for(lambda: not is_alive(int(note.read_text())))


def test_process_that_will_not_stop_is_killed(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.dev.supervisor.children.PATIENCE", 0.2)
    children.start({"stubborn": [sys.executable, "-c", STUBBORN]})
    time.sleep(0.3)
    children.stop()
    assert children.running["stubborn"].returncode == -signal.SIGKILL


def test_process_that_ended_is_named(children: Children) -> None:
    children.start({"web": [sys.executable, "-c", "raise SystemExit(3)"], "beat": SLEEP})
    wait_for(children.ended)
    (end,) = children.ended()
    assert str(end) == "web stopped with exit code 3"
    assert end.can_restart


def test_process_that_ended_is_started_again_once_its_pause_is_over(
    children: Children, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x')"
    children.start({"web": [sys.executable, "-c", code]})
    for number in range(1, 4):
        wait_for(children.ended)
        assert len(starts.read_text()) == number
        children.start_later("web")
        assert children.ended() == []
        wait_for(lambda: children.start_due() or children.ended())


def test_what_an_ended_process_left_is_ended_before_it_is_started_again(
    children: Children, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    code = PARENT.format(child=STUBBORN, note=str(note))
    children.start({"parent": [sys.executable, "-c", code]})
    wait_for(lambda: note.exists() and note.read_text())
    children.running["parent"].kill()
    wait_for(children.ended)
    children.start_later("parent")
    wait_for(lambda: not is_alive(int(note.read_text())))


def test_wrong_setting_is_no_reason_to_restart(children: Children) -> None:
    children.start({"web": [sys.executable, "-c", f"raise SystemExit({os.EX_CONFIG})"]})
    wait_for(children.ended)
    assert not children.ended()[0].can_restart


@pytest.mark.servers
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux signals children")
def test_killed_supervisor_takes_its_processes_along(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import django, pathlib, sys, time; django.setup()\n"
        "from portal.dev.supervisor.children import Children\n"
        "c = Children(); c.start({'one': [sys.executable, '-c', 'import time; time.sleep(60)']})\n"
        f"pathlib.Path({str(note)!r}).write_text(str(c.running['one'].pid)); time.sleep(60)"
    )
    around = {**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    with subprocess.Popen([sys.executable, "-c", code], env=around) as supervisor:  # noqa: S603 - our own words
        wait_for(lambda: note.exists() and note.read_text())
        supervisor.kill()
    wait_for(lambda: not is_alive(int(note.read_text())))


def test_nobody_waits_for_a_balancer() -> None:
    assert environment()["GATEHOUSE_DRAIN_SECONDS"] == "0"


def test_commands_follow_the_settings(settings: Any, tmp_path: Path) -> None:
    settings.GATEHOUSE_VAR = tmp_path
    words = commands()
    assert words["web"] == [sys.executable, "-m", "portal.serve"]
    assert str(tmp_path / "beat-schedule") in words["beat"]
    assert list(words) == ["web", "worker", "beat", "follow"]


@pytest.mark.parametrize(
    ("name", "has_them"), [("web", False), ("beat", False), ("worker", True), ("follow", True)]
)
def test_only_worker_and_follower_have_the_private_keys(
    name: str, *, has_them: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEHOUSE_SEAL_PRIVATE_KEYS_FILE", "/keys.pem")
    assert (environment(name)["GATEHOUSE_SEAL_PRIVATE_KEYS_FILE"] == "/keys.pem") is has_them
