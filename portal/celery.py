"""The Celery application that worker and beat load."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, before_task_publish, worker_init, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("gatehouse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def make_keys(**_: Any) -> None:
    """Make the keys of clusters' credentials where there are none: they are the worker's."""
    from sync.connect import seal_keys  # noqa: PLC0415  needs settings

    try:
        seal_keys.ensure_keys()
    except (seal_keys.KeyFileError, OSError) as error:
        logging.getLogger(__name__).error("no credential of a cluster can be opened: %s", error)  # noqa: TRY400


@beat_init.connect
def note_beat(**_: Any) -> None:
    """Have each heartbeat that beat sends to the worker be one of its own, too."""
    before_task_publish.connect(_note_beat, weak=False)


def _note_beat(sender: str = "", **_: Any) -> None:
    from django.db import Error, connections  # noqa: PLC0415  needs settings
    from psycopg_pool import PoolTimeout  # noqa: PLC0415  the same

    from admission.models import BackgroundWork, note_work  # noqa: PLC0415  the same

    if sender != "portal.tasks.note_worker":
        return
    try:
        note_work(BackgroundWork.Name.BEAT)
    except (Error, PoolTimeout) as error:
        logging.getLogger(__name__).warning("beat's heartbeat is not kept: %s", error)
    finally:
        connections.close_all()


@worker_shutting_down.connect
def end_watches(**_: Any) -> None:
    """Leave no run behind that another worker has to find: watches end on request."""
    from sync.passes import watch  # noqa: PLC0415  needs settings

    watch.stop()
