"""The web server's parent starts, signals and stops processes in order; no process runs here."""

from __future__ import annotations

import functools
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from portal import graceful_shutdown, serve
from portal.dev import self_signed
from portal.serving import application, server
from portal.serving.certificate import CertificateError, Files
from portal.serving.front import Front
from tests.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IS_LINUX = sys.platform == "linux"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class Process:
    """Stands for a web process: it records its events, and is as ready as it is made."""

    def __init__(self, *, is_ready: bool = True) -> None:
        self.is_ready = lambda: is_ready
        self.events: list[Any] = []
        self.alive = True

    def start(self) -> None:
        self.events.append("start")

    def forget_gauges(self) -> None:
        self.events.append("forget gauges")

    def is_alive(self) -> bool:
        return self.alive

    def send(self, number: int) -> None:
        self.events.append(number)

    def terminate(self) -> None:
        self.events.append("terminate")
        self.alive = False

    def end(self, within: float) -> None:
        assert within > 0
        self.events.append("end")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SHORTEST_DRAIN", 0.0)
    monkeypatch.setattr(server, "LAST_REQUEST_WITHIN", 0.0)
    monkeypatch.setattr(server, "READY_WITHIN", 0.2)
    monkeypatch.setattr(server, "build_front", lambda: None)
    monkeypatch.setattr(server, "settle", lambda: None)


@pytest.fixture
def old() -> Process:
    """The web process that runs."""
    return Process()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    self_signed.main(["--folder", str(tmp_path)])
    return Files(tmp_path / "tls.crt", tmp_path / "tls.key")


@pytest.fixture
def made(files: Files, old: Process) -> Iterator[server.Server]:
    """A server with TLS and one web process, which is not started."""
    found = server.Server(("127.0.0.1", 0), workers=1, drain=0, files=files)
    take(found, old)
    yield found
    found.stop()


def take(made: server.Server, *processes: Any) -> None:
    made.processes = list(processes)


def running(made: server.Server) -> Any:
    return made.processes


def fresh(monkeypatch: pytest.MonkeyPatch, made: server.Server, *, is_ready: bool) -> Process:
    """The process that the server would start next."""
    process = Process(is_ready=is_ready)
    monkeypatch.setattr(made, "new_process", lambda _number: process)
    return process


def test_successor_is_ready_before_its_predecessor_is_signalled(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, old: Process
) -> None:
    new = fresh(monkeypatch, made, is_ready=True)
    made.replace([0])
    assert running(made) == [new]
    assert new.events == ["start"]
    assert old.events == [graceful_shutdown.REPLACED, "terminate", "end"]


def test_successor_that_does_not_start_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    made: server.Server,
    old: Process,
    caplog: pytest.LogCaptureFixture,
) -> None:
    new = fresh(monkeypatch, made, is_ready=False)
    made.replace([0])
    assert running(made) == [old]
    assert new.events == ["start", "terminate", "end"]
    assert old.events == []
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_successors_of_what_ended_come_until_one_is_ready(
    monkeypatch: pytest.MonkeyPatch,
    made: server.Server,
    old: Process,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old.alive = False
    broken = [Process(is_ready=False) for _ in range(4)]
    for process in broken:
        process.alive = False
    last = Process()
    coming = iter([*broken, last])
    pauses: list[float] = []
    monkeypatch.setattr(made, "new_process", lambda _number: next(coming))
    monkeypatch.setattr(
        made, "wait", lambda seconds, **more: None if more else pauses.append(seconds)
    )
    made.replace([0])
    assert running(made) == [last]
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.8]
    assert set(old.events) == {"forget gauges"}
    assert all(process.events == ["start", "terminate", "end"] for process in broken)
    assert not made.is_stopping
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_process_that_ends_during_a_replacement_is_replaced_with_the_others(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, old: Process
) -> None:
    old.alive, other = False, Process()
    take(made, old, other)
    first, failed, second = Process(), Process(is_ready=False), Process()
    failed.alive = False
    coming = {0: [failed, first], 1: [second]}

    def spawn(number: int) -> Process:
        other.alive = False  # while the first successor is started
        return coming[number].pop(0)

    monkeypatch.setattr(made, "new_process", spawn)
    monkeypatch.setattr(made, "wait", lambda *_, **__: None)
    made.replace([0])
    assert running(made) == [first, second]


def test_ended_and_running_processes_are_replaced_in_one_go(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, old: Process
) -> None:
    ended, new = Process(), [Process(), Process()]
    ended.alive = False
    take(made, old, ended)
    monkeypatch.setattr(made, "new_process", new.__getitem__)
    made.replace(range(2))
    assert running(made) == new
    assert old.events == [graceful_shutdown.REPLACED, "terminate", "end"]


def test_server_that_stops_starts_no_successor(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, old: Process
) -> None:
    old.alive = False
    made.is_stopping = True
    monkeypatch.setattr(made, "new_process", None)
    made.replace([0])


def test_wait_ends_at_once_when_what_it_waits_for_is_true(made: server.Server) -> None:
    made.wait(1000, until=lambda: True)
    made.is_stopping = True
    made.wait(1000)
    made.is_stopping = False
    looks = iter([False, False, True])
    made.wait(1000, until=lambda: next(looks), step=0.01)
    made.wait(0.01)


@pytest.fixture
def _handlers_as_before() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def played(monkeypatch: pytest.MonkeyPatch, made: server.Server, *plays: Any) -> None:
    """Have the server serve; at each of its waits something happens, at last a SIGTERM."""
    coming = iter([*plays, lambda: os.kill(os.getpid(), signal.SIGTERM)])
    monkeypatch.setattr(made, "wait", lambda *_, **__: next(coming)())
    made.serve()


@pytest.mark.usefixtures("_handlers_as_before")
def test_server_starts_its_processes_and_ends_them_at_a_signal(
    monkeypatch: pytest.MonkeyPatch, made: server.Server
) -> None:
    process = fresh(monkeypatch, made, is_ready=True)
    monkeypatch.setattr(server, "settle", lambda: process.events.append("settle"))
    played(monkeypatch, made)
    # A collection after the fork would copy the pages of all that is loaded.
    assert process.events == ["settle", "start", "terminate", "end"]
    assert all(listener.fileno() == -1 for listener in made._listeners)


@pytest.mark.usefixtures("_handlers_as_before")
def test_server_replaces_what_ended_and_all_when_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, made: server.Server
) -> None:
    replaced: list[Any] = []
    process = fresh(monkeypatch, made, is_ready=True)

    def replace(numbers: Any) -> None:
        replaced.append(numbers)
        process.alive = True

    monkeypatch.setattr(made, "replace", replace)
    ask = functools.partial(os.kill, os.getpid(), signal.SIGHUP)
    played(monkeypatch, made, ask, lambda: setattr(process, "alive", False))
    assert replaced == [range(1), {0}]


@pytest.mark.usefixtures("_handlers_as_before")
def test_processes_are_told_of_a_new_certificate(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, files: Files
) -> None:
    process = fresh(monkeypatch, made, is_ready=True)
    renew = functools.partial(self_signed.main, ["--folder", str(files.key.parent)])
    played(monkeypatch, made, renew, bool)
    assert process.events == ["start", signal.SIGHUP, "terminate", "end"]


@pytest.mark.parametrize("fits", [True, False], ids=["fits", "does not fit"])
def test_reload_takes_the_pair_that_fits(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, files: Files, *, fits: bool
) -> None:
    replaced: list[Any] = []
    monkeypatch.setattr(made, "replace", replaced.append)
    if not fits:
        files.key.write_text("nothing")
    made.reload()
    assert replaced == ([range(1)] if fits else [])


def test_server_does_not_start_with_files_that_do_not_fit(files: Files) -> None:
    files.key.write_text("nothing")
    with pytest.raises(CertificateError):
        server.Server(("127.0.0.1", 0), workers=1, drain=0, files=files)


def test_stop_is_announced(
    made: server.Server, old: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    made._drain = 1
    monkeypatch.setattr("time.sleep", lambda _: None)
    made.stop()
    assert old.events[:3] == [
        graceful_shutdown.STOPPING,
        graceful_shutdown.REPLACED,
        "terminate",
    ]


def test_each_process_has_a_socket_of_its_own_that_the_parent_holds() -> None:
    found = server.Server(("127.0.0.1", 0), workers=3, drain=0, files=None, probe_port=free_port())
    process = found.new_process(2)
    assert not process.is_ready()
    sockets = [*found._listeners, found._probe_listener]
    assert len({each.fileno() for each in found._listeners}) == (3 if IS_LINUX else 1)
    assert len({each.getsockname() for each in found._listeners}) == 1
    found.stop()
    assert [each and each.fileno() for each in sockets] == [-1] * 4


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was started and stopped beside the application."""
    from admission import writer  # noqa: PLC0415 - needs Django
    from policies import snapshot  # noqa: PLC0415 - the same

    seen: list[str] = []
    monkeypatch.setattr(snapshot, "start", lambda: seen.append("start"))
    monkeypatch.setattr(snapshot, "stop", lambda: seen.append("stop"))
    monkeypatch.setattr(writer, "stop", lambda *_: seen.append("flush"))
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)
    return seen


def test_portal_begins_without_its_database(
    threads: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from django.db import OperationalError  # noqa: PLC0415 - needs Django

    def fail() -> None:
        raise OperationalError

    monkeypatch.setattr("policies.snapshot.current", fail)
    application.begin()
    application.finish(1)
    assert threads == ["start", "flush", "stop"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_application_is_whole_before_the_first_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "metrics"))
    assert isinstance(application.build_front(), Front)
    assert (tmp_path / "metrics").is_dir()


@pytest.fixture
def _own_metrics_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")  # remembered, to be as it was afterwards
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")


@pytest.mark.usefixtures("_own_metrics_folder")
def test_port_in_use_is_one_line(
    settings: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "FREE_WITHIN", 0.1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        settings.GATEHOUSE_LISTEN_PORT = listener.getsockname()[1]
        assert serve.main() == os.EX_CONFIG
    (line,) = capsys.readouterr().err.splitlines()
    assert str(settings.GATEHOUSE_LISTEN_PORT) in line


@pytest.mark.usefixtures("_own_metrics_folder")
def test_wrong_pair_is_one_line(
    settings: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.GATEHOUSE_LISTEN_PORT = 0
    for name in ("CERTIFICATE", "KEY"):
        setattr(settings, f"GATEHOUSE_TLS_{name}", tmp_path / name)
    assert serve.main() == os.EX_CONFIG
    assert capsys.readouterr().err.startswith("gatehouse: TLS: ")


@pytest.mark.usefixtures("_own_metrics_folder")
def test_server_follows_the_settings(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[server.Server] = []
    monkeypatch.setattr(server.Server, "serve", lambda made: served.insert(0, made))
    settings.GATEHOUSE_WEB_WORKERS = 3
    assert serve.main() == 0
    assert (served[0].workers, served[0].files) == (3, None)
    served[0].stop()
