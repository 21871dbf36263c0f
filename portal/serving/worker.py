"""The life of one web process: load, serve, drain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from granian.server.mp import MPServer

from portal import graceful_shutdown
from portal.serving.application import begin, build_front, finish, settle

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event
    from socket import socket

    from portal.serving.front import Front

_FLUSH_WITHIN: Final = 5.0  # seconds


def load(
    front: Front | None, listener: int | None, ready: Event, probe_listener: socket | None = None
) -> Front:
    """The application, with all policies in memory; ``ready`` is set when that is so.

    It is the one that the parent loaded, where this process is a copy of the parent.
    """
    graceful_shutdown.listen_for_signals(listener)
    answering = front or build_front()
    if probe_listener:
        answering.answer_probes(probe_listener)  # before the database is asked for the policies
    begin()
    settle()
    ready.set()
    return answering


def run(*words: Any) -> None:
    """Serve until stopped and the last request is answered, then finish what is left."""
    MPServer._spawn_rsgi_worker(*words)  # noqa: SLF001 - the server's own way to run a process
    finish(_FLUSH_WITHIN)
