"""Background work: the Celery application that worker and beat load."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("gatehouse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def make_keys(**_: Any) -> None:
    """Make the keys of clusters' credentials where there are none: they are the worker's."""
    from policies.sync import sealing_keys  # noqa: PLC0415  needs settings

    try:
        sealing_keys.ensure_keys()
    except (sealing_keys.KeyFileError, OSError) as error:
        logging.getLogger(__name__).error("no credential of a cluster can be opened: %s", error)  # noqa: TRY400


@worker_shutting_down.connect
def end_watches(**_: Any) -> None:
    """Leave no run behind that another worker has to find: watches end when they are told to."""
    from policies.sync import watching  # noqa: PLC0415  needs settings

    watching.stop()
