"""``make run`` from a user's view: its output is correct, and no process remains when it stops."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import (
    PATIENCE,
    ROOT,
    children_of,
    free_port,
    is_alive,
    running,
    status_of,
    wait_for,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers


@dataclass
class Portal:
    """A started portal, and its output until it was ready."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text()

    def offspring(self) -> set[int]:
        """Its descendant processes."""
        found: set[int] = set()
        parents = [self.process.pid]
        while parents:
            born = children_of(parents.pop())
            parents += born
            found |= set(born)
        return found


@contextmanager
def portal(surroundings: dict[str, str], log: Path, **settings: str) -> Iterator[Portal]:
    port = free_port()
    words = [sys.executable, "-m", "portal.dev.run", "--port", str(port)]
    with running(words, {**surroundings, **settings}, log) as process:
        started = Portal(process, port, log)
        wait_for(lambda: "Ctrl-C stops it" in started.text or process.poll() is not None)
        assert process.poll() is None, started.text
        # Other processes may print after it.
        wait_for(lambda: re.search(r"^curl -sS .*\n\n", started.text, re.MULTILINE))
        yield started


def ask(portal: Portal) -> dict[str, Any]:
    """Run the printed command unchanged."""
    (line,) = [line for line in portal.text.splitlines() if line.startswith("curl ")]
    done = subprocess.run(shlex.split(line), check=True, capture_output=True)  # noqa: S603 - what we printed
    answer: dict[str, Any] = json.loads(done.stdout)["response"]
    return answer


def tutorial_shows() -> list[re.Pattern[str]]:
    """The messages in the tutorial, with their placeholders."""
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    return [
        re.compile(re.escape(text).replace("…", ".*"))
        for text in re.findall(r"^```text\n(.*)\n```$", page, re.MULTILINE)
    ]


def gone(numbers: set[int]) -> bool:
    """Whether none of these runs any more."""
    return not any(is_alive(number) for number in numbers)


def stop(portal: Portal, number: int) -> None:
    there = portal.offspring()
    assert len(there) >= 3, there
    portal.process.send_signal(number)
    assert portal.process.wait(PATIENCE) == 0
    assert portal.text.splitlines()[-1] == "gatehouse: stopped"
    wait_for(lambda: gone(there))


def test_first_run_prints_everything_and_the_second_keeps_it(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    with portal(surroundings, tmp_path / "one.log") as first:
        assert re.search(r"sign in as admin with password \S{12,} \(shown once\)", first.text)
        answer = ask(first)
        assert (answer["allowed"], answer["status"]["code"]) == (False, 403)
        assert f"http://127.0.0.1:{first.port}/decisions/" in answer["status"]["message"]
        message = answer["status"]["message"]
        assert any(shown.fullmatch(message) for shown in tutorial_shows()), message
        assert status_of(first.port, "/accounts/login/") == 200
        stop(first, signal.SIGINT)
    with portal(surroundings, tmp_path / "two.log") as second:
        assert "password" not in second.text
        assert ask(second)["allowed"] is False
        stop(second, signal.SIGTERM)


@pytest.mark.parametrize("name", ["portal.serve", " worker ", " beat "])
def test_process_that_dies_is_named_and_started_again(
    surroundings: dict[str, str], tmp_path: Path, name: str
) -> None:
    with portal(surroundings, tmp_path / "log") as started:
        (victim,) = children_named(started, name)
        subprocess.run(["kill", "-KILL", str(victim)], check=True)  # noqa: S603, S607 - our own child
        shown = "web" if name == "portal.serve" else name.strip()
        wait_for(lambda: f"gatehouse: {shown} stopped with exit code -9" in started.text)
        wait_for(lambda: children_named(started, name) not in ([], [victim]))
        wait_for(lambda: status_of(started.port, "/readyz") == 200)
        stop(started, signal.SIGTERM)


def children_named(portal: Portal, name: str) -> list[int]:
    """The supervisor's child processes whose command contains this word."""
    return [one for one in children_of(portal.process.pid) if name in words_of(one)]


def test_real_servers_are_used_when_they_are_named(
    surroundings: dict[str, str],
    tmp_path: Path,
    postgres_address: str,
    redis_address: tuple[str, str],
) -> None:
    address, password = redis_address
    settings = {
        "GATEHOUSE_DATABASE_URL": postgres_address,
        "GATEHOUSE_BROKER_URL": address,
        "GATEHOUSE_BROKER_PASSWORD": password,
    }
    with portal(surroundings, tmp_path / "log", **settings) as started:
        assert ask(started)["allowed"] is False
        stop(started, signal.SIGTERM)
    assert not list((tmp_path / "var").glob("*.sqlite3"))
