"""Life of a web process: ``build``, ``begin``, ``settle`` (gc), ``load``, ``run`` and ``finish``.

``build`` may run before a process forks; ``begin`` starts threads, which a fork would lose.
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

    from portal.graceful_shutdown import Application
    from portal.serving.front import Front

logger = logging.getLogger(__name__)
_COMMIT_WITHIN: Final = 5.0  # seconds
_COLLECT_EVERY: Final = 20_000  # objects: those of a few dozen reviews


def build() -> Application:
    """The WSGI application of both stacks, with all its views imported before the first request."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        # Several processes count into files there; the folder must exist before the first count.
        Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
    full_stack = get_wsgi_application()
    from django.urls import get_resolver  # noqa: PLC0415  needs Django to be set up

    from portal.serving.lean import URLCONF, LeanHandler  # noqa: PLC0415  the same

    for urlconf in (URLCONF, None):
        _ = get_resolver(urlconf).url_patterns
    return LeanHandler(full_stack)


def build_front() -> Front:
    """The RSGI application that our own web server calls."""
    lean_handler = build()
    from portal.serving.front import Front  # noqa: PLC0415  needs Django to be set up

    return Front(graceful_shutdown.with_connection_close(lean_handler))


def begin() -> None:
    """Load the policies and start the thread that keeps them fresh, even without a database."""
    from django.db import Error, connections  # noqa: PLC0415  needs Django to be set up
    from psycopg_pool import PoolTimeout  # noqa: PLC0415  the same

    from admission.metrics import begin_at_zero  # noqa: PLC0415  the same
    from policies import snapshot  # noqa: PLC0415  the same
    from portal.health import problems  # noqa: PLC0415  the same

    snapshot.start()
    try:
        begin_at_zero(snapshot.current().clusters)
        if key_problem := problems.key_problem():
            logger.error(key_problem)
    except (Error, PoolTimeout) as error:
        # /readyz fails until the thread that was just started has loaded them.
        logger.warning("policies are not read yet: %s", error)
    finally:
        connections.close_all()


def settle() -> None:
    """Tune the garbage collector: ignore loaded objects, and run rarely."""
    # Loaded objects stay for ever: the collector need not visit them every few requests.
    gc.collect()
    gc.freeze()
    # A review leaves no cycles, and searching for some took a thirtieth of the time.
    gc.set_threshold(_COLLECT_EVERY)


def finish(timeout: float) -> None:
    """Commit accepted reviews within so many seconds, then end the threads of this process."""
    from django.db import connections  # noqa: PLC0415  needs Django to be set up

    from admission import writer  # noqa: PLC0415  the same
    from policies import snapshot  # noqa: PLC0415  the same

    writer.stop(timeout)
    snapshot.stop()
    connections.close_all()


def load(
    front: Front | None, listener: int | None, ready: Event, probe_listener: socket | None = None
) -> Front:
    """Load the policies, set ``ready``, and return the application.

    ``front`` is the parent's own application, if this process is a fork of the parent.
    """
    graceful_shutdown.listen_for_signals(listener)
    serving_front = front or build_front()
    if probe_listener:
        serving_front.answer_probes(probe_listener)  # first: loading may wait for the database
    begin()
    settle()
    ready.set()
    return serving_front


def run(*worker_arguments: Any) -> None:
    """Serve until stopped and the last request is answered, then commit the rest."""
    from granian.server.mp import MPServer  # noqa: PLC0415  wsgi.py needs none of it

    MPServer._spawn_rsgi_worker(*worker_arguments)  # noqa: SLF001 - the server's own way to run a process
    finish(_COMMIT_WITHIN)
