"""The web server's parent starts, signals and stops processes in order; no process runs here."""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from portal import graceful_shutdown, serve
from portal.dev import self_signed
from portal.serving import application, server
from portal.serving.certificate import Files

if TYPE_CHECKING:
    from collections.abc import Iterator


class Process:
    """Stands for a web process: it records its events, and is as ready as it is made."""

    def __init__(self, *, is_ready: bool = True) -> None:
        self.is_ready = lambda: is_ready
        self.events: list[Any] = []
        self.interrupt_by_parent = False
        self.inner = self
        self.idx = self.pid = 0
        self.alive = True

    def start(self) -> None:
        self.events.append("start")

    def is_alive(self) -> bool:
        return self.alive

    def terminate(self) -> None:
        self.events.append("terminate")
        self.alive = False

    def join(self, _timeout: float | None = None) -> None:
        self.events.append("join")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SHORTEST_DRAIN", 0.0)
    monkeypatch.setattr(server, "LAST_REQUEST_WITHIN", 0.0)
    monkeypatch.setattr(server, "READY_WITHIN", 0.2)
    monkeypatch.setattr(
        server, "send_signal", lambda process, number: process.events.append(number)
    )
    monkeypatch.setattr(server, "build_front", lambda: None)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[server.Server]:
    """A server with TLS and one web process, which is not started."""
    self_signed.main(["--folder", str(tmp_path)])
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    found = server.Server(("127.0.0.1", 0), workers=1, drain=0, files=files)
    found.wrks = [Process()]  # type: ignore[list-item]
    yield found
    found._stop_workers()


def fresh(monkeypatch: pytest.MonkeyPatch, made: server.Server, *, is_ready: bool) -> Process:
    """The process that the server would start next."""
    process = Process(is_ready=is_ready)
    monkeypatch.setattr(made, "new_process", lambda *_: process)
    return process


def test_connections_outlive_those_that_an_api_server_keeps(made: server.Server) -> None:
    """Go's default transport, which API servers ask webhooks by, closes after 90 seconds."""
    assert made.http1_settings is not None
    assert made.http1_settings.header_read_timeout > 100_000


def test_successor_is_ready_before_its_predecessor_is_signalled(
    monkeypatch: pytest.MonkeyPatch, made: server.Server
) -> None:
    old, new = made.wrks[0], fresh(monkeypatch, made, is_ready=True)
    made.replace([0])
    assert made.wrks == [new]
    assert new.events == ["start"]
    assert not new.interrupt_by_parent
    assert old.events == [graceful_shutdown.REPLACED, "terminate", "join"]  # type: ignore[attr-defined]


def test_successor_that_does_not_start_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = made.wrks[0], fresh(monkeypatch, made, is_ready=False)
    made.replace([0])
    assert made.wrks == [old]
    assert new.events == ["start", "terminate", "join"]
    assert old.events == []  # type: ignore[attr-defined]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_successors_of_what_ended_come_until_one_is_ready(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, caplog: pytest.LogCaptureFixture
) -> None:
    made.wrks[0].alive = False  # type: ignore[attr-defined]
    broken = [Process(is_ready=False) for _ in range(4)]
    for process in broken:
        process.alive = False
    last = Process()
    coming = iter([*broken, last])
    pauses: list[float] = []
    monkeypatch.setattr(made, "new_process", lambda *_: next(coming))
    monkeypatch.setattr(made, "wait", pauses.append)
    made.replace([0])
    assert made.wrks == [last]
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.8]
    assert not made.interrupt_signal
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_process_that_ends_during_a_replacement_is_replaced_with_the_others(
    monkeypatch: pytest.MonkeyPatch, made: server.Server
) -> None:
    made.wrks = [Process(), Process()]  # type: ignore[list-item]
    made.wrks[0].alive = False  # type: ignore[attr-defined]
    first, failed, second = Process(), Process(is_ready=False), Process()
    failed.alive = False
    coming = {0: [failed, first], 1: [second]}

    def spawn(idx: int, *_: object) -> Process:
        if len(coming[0]) == 2:  # the other one ends while the first successor is started
            made.interrupt_children.append(1)
        return coming[idx].pop(0)

    monkeypatch.setattr(made, "new_process", spawn)
    monkeypatch.setattr(made, "wait", lambda _: None)
    made.replace([0])
    assert made.wrks == [first, second]
    assert made.interrupt_children == []


def test_server_that_stops_starts_no_successor(
    monkeypatch: pytest.MonkeyPatch, made: server.Server
) -> None:
    made.wrks[0].alive = False  # type: ignore[attr-defined]
    made.interrupt_signal = True
    monkeypatch.setattr(made, "new_process", None)
    made.replace([0])


def test_crashes_in_a_row_do_not_stop_the_server(
    monkeypatch: pytest.MonkeyPatch, made: server.Server
) -> None:
    """granian ends where a process that it restarted ends within 5.5 seconds."""
    made.wrks[0].alive = False  # type: ignore[attr-defined]
    fresh(monkeypatch, made, is_ready=True)
    made.replace([0])
    assert made.respawned_wrks == {}


@pytest.mark.parametrize("fits", [True, False], ids=["fits", "does not fit"])
def test_reload_takes_the_pair_that_fits(
    monkeypatch: pytest.MonkeyPatch, made: server.Server, tmp_path: Path, *, fits: bool
) -> None:
    before, replaced = made.ssl_ctx, []
    monkeypatch.setattr(made, "replace", replaced.append)
    if not fits:
        (tmp_path / "tls.key").write_text("nothing")
    made._reload(None, None)
    assert replaced == ([range(1)] if fits else [])
    assert (made.ssl_ctx != before) is fits


def test_reload_does_not_swallow_the_end(made: server.Server) -> None:
    made.interrupt_signal = True
    made._tls_files = None
    made.replace = lambda *_: None  # type: ignore[method-assign, assignment]
    made._reload(None, None)
    assert made.main_loop_interrupt.is_set()


def test_stop_is_announced(made: server.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    made._drain, process = 1, made.wrks[0]
    monkeypatch.setattr(server.time, "sleep", lambda _: None)
    made._stop_workers()
    events = process.events[:3]  # type: ignore[attr-defined]
    assert events == [graceful_shutdown.STOPPING, graceful_shutdown.REPLACED, "terminate"]


def test_client_certificates_are_required_where_an_authority_is_named(tmp_path: Path) -> None:
    self_signed.main(["--folder", str(tmp_path)])
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "tls.crt")
    found = server.Server(("127.0.0.1", 0), workers=1, drain=0, files=files)
    is_on, _, _, _, oldest, authority, _, is_required = found.ssl_ctx
    assert (is_on, oldest, is_required) == (True, "tls1.2", True)
    assert Path(authority).read_bytes() == files.certificate.read_bytes()
    found._stop_workers()


def test_sockets_belong_to_the_parent(made: server.Server) -> None:
    made._init_shared_socket()
    process = made.new_process(0)
    assert not process.is_ready()
    (_, owned) = made._socket_slots[0]
    assert isinstance(owned, socket.socket)
    made._drop_shared_socket()
    assert owned.fileno() == -1


@pytest.mark.django_db
def test_process_is_ready_once_its_policies_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(application, "begin", lambda: begun.append("begin"))
    monkeypatch.setattr(application.graceful_shutdown, "listen_for_signals", begun.append)
    monkeypatch.setattr(application.gc, "freeze", lambda: begun.append("freeze"))
    ready = multiprocessing.Event()
    front = object()
    assert application.load(front, 7, ready) is front
    assert begun == [7, "begin", "freeze"]
    assert ready.is_set()


def test_process_finishes_after_its_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    # granian has no public way to run a process.
    monkeypatch.setattr(server.MPServer, "_spawn_rsgi_worker", lambda *words: done.append(words))
    monkeypatch.setattr(application, "finish", lambda _timeout: done.append("finish"))
    application.run("a", "b")
    assert done == [("a", "b"), "finish"]


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
    assert hasattr(application.build_front(), "__rsgi__")
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
    assert (served[0].workers, served[0].ssl_ctx[0]) == (3, False)
