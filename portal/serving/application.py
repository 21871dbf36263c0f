"""The life of a web process: build the application, load, serve, drain.

``build`` may run before a process divides itself; ``begin`` starts threads and must run after.
"""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.wsgi import get_wsgi_application

from portal import graceful_shutdown

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event
    from socket import socket

    from portal.serving.front import Front
    from portal.serving.lean import Application

logger = logging.getLogger(__name__)
_FLUSH_WITHIN: Final = 5.0  # seconds
_RARELY: Final = 20_000  # objects: those of some dozens of reviews


def build() -> Application:
    """Everything that answers requests, as WSGI: no address is imported with its first request."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        # Several processes count into files there; it must exist before the first count.
        Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
    full = get_wsgi_application()
    from django.urls import get_resolver  # noqa: PLC0415  needs Django to be set up

    from portal.serving.lean import URLCONF, LeanHandler  # noqa: PLC0415  the same

    for urlconf in (URLCONF, None):
        _ = get_resolver(urlconf).url_patterns
    return LeanHandler(full)


def build_front() -> Front:
    """The same behind what our own web server calls."""
    answering = build()
    from portal.serving.front import Front  # noqa: PLC0415  needs Django to be set up

    return Front(graceful_shutdown.saying_farewell(answering))


def begin() -> None:
    """Read the policies and keep them fresh from here on; without a database, try again."""
    from django.db import Error, connections  # noqa: PLC0415  needs Django to be set up
    from psycopg_pool import PoolTimeout  # noqa: PLC0415  the same

    from admission.metrics import begin_at_zero  # noqa: PLC0415  the same
    from policies import snapshot  # noqa: PLC0415  the same
    from portal.health import problems  # noqa: PLC0415  the same

    snapshot.start()
    try:
        begin_at_zero(snapshot.current().clusters)
        if wrong := problems.key_problem():
            logger.error(wrong)
    except (Error, PoolTimeout) as error:
        # /readyz says so until the thread that was just started has read them.
        logger.warning("policies are not read yet: %s", error)
    finally:
        connections.close_all()


def settle() -> None:
    """Have the garbage collector leave alone what is loaded, and look seldom for what is not."""
    # What was loaded stays: the collector need not look at it again with every few requests.
    gc.collect()
    gc.freeze()
    # A review leaves no cycles; to search each few of them for some was a thirtieth of the work.
    gc.set_threshold(_RARELY)


def finish(timeout: float) -> None:
    """Commit what was accepted within so many seconds, then end the threads of this process."""
    from django.db import connections  # noqa: PLC0415  needs Django to be set up

    from admission import writer  # noqa: PLC0415  the same
    from policies import snapshot  # noqa: PLC0415  the same

    writer.stop(timeout)
    snapshot.stop()
    connections.close_all()


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
    from granian.server.mp import MPServer  # noqa: PLC0415  wsgi.py needs none of it

    MPServer._spawn_rsgi_worker(*words)  # noqa: SLF001 - the server's own way to run a process
    finish(_FLUSH_WITHIN)
