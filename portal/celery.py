"""The Celery application that worker and beat load, and the schedule of beat."""

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
app.conf.beat_schedule = {
    "say that worker and beat are at work": {
        "task": "portal.tasks.note_worker",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    # It is late for the next look before it is too late for this one: they do not pile up.
    "look which clusters are due": {
        "task": "sync.tasks.look_for_due_runs",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "try whether clusters ask before they let pods in": {
        "task": "sync.tasks.look_after_webhooks",
        "schedule": 60.0,
        "options": {"expires": 50.0},
    },
    "forget old runs and tombstones": {
        "task": "sync.tasks.forget_old_runs",
        "schedule": 3600.0,
    },
    "forget expired sessions and tokens": {
        "task": "portal.tasks.clear_expired",
        "schedule": 3600.0,
    },
    "keep how full quotas are": {
        "task": "policies.tasks.keep_usage_points",
        "schedule": 3600.0,
    },
    "look for differences in the quota ledger": {
        "task": "policies.tasks.report_differences",
        "schedule": 6 * 3600.0,
    },
    "count the answers of the last minutes": {
        "task": "admission.tasks.tally_answers",
        "schedule": 60.0,
        "options": {"expires": 50.0},
    },
    # Each looks hourly, so that a machine that sleeps at midnight catches up; with nothing to do
    # it is one question.
    "make the partitions of the coming days": {
        "task": "admission.tasks.prepare_partitions",
        "schedule": 3600.0,
    },
    "export the days that are over": {
        "task": "admission.tasks.export_record",
        "schedule": 3600.0,
    },
    "take off the record what is past its time": {
        "task": "admission.tasks.apply_retention",
        "schedule": 3600.0,
    },
}


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
