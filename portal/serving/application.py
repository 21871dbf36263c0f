"""Parts of a web process's life: ``build``, ``begin``, ``settle`` (gc) and ``finish``.

``build`` may run before a process forks; ``begin`` starts threads, which a fork would lose.
"""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.core.wsgi import get_wsgi_application

if TYPE_CHECKING:
    from portal.graceful_shutdown import Application
    from portal.serving.front import Front

logger = logging.getLogger(__name__)
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
    """The ASGI application that our own web server calls."""
    lean_handler = build()
    from portal.serving.front import Front  # noqa: PLC0415  needs Django to be set up

    return Front(lean_handler)


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
