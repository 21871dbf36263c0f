"""Celery app of worker and beat: beat_schedule of tasks, beat's heartbeat, keys made at start."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, before_task_publish, worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("gatehouse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_schedule = {
    "heartbeat of worker and beat": {
        "task": "portal.tasks.note_worker",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    # A task expires when its successor is due, so that they do not pile up without a worker.
    "start due sync runs": {
        "task": "sync.tasks.queue_due_runs",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "send canaries through webhooks": {
        "task": "sync.tasks.queue_webhook_checks",
        "schedule": 60.0,
        "options": {"expires": 50.0},
    },
    "delete old runs and tombstones": {
        "task": "sync.tasks.forget_old_runs",
        "schedule": 3600.0,
    },
    "delete expired sessions and tokens": {
        "task": "portal.tasks.clear_expired",
        "schedule": 3600.0,
    },
    "store points of quota usage": {
        "task": "policies.tasks.keep_usage_points",
        "schedule": 3600.0,
    },
    "compare the quota ledger with its charges": {
        "task": "policies.tasks.report_differences",
        "schedule": 6 * 3600.0,
    },
    "start due replays": {
        "task": "admission.tasks.queue_due_replays",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "check changes in review": {
        "task": "admission.tasks.check_changes",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "go on with roll-outs": {
        "task": "admission.tasks.queue_rollouts",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "delete old replays": {
        "task": "admission.tasks.forget_old_replays",
        "schedule": 3600.0,
    },
    "tally recent decisions": {
        "task": "admission.tasks.tally_answers",
        "schedule": 60.0,
        "options": {"expires": 50.0},
    },
    # These run hourly, so that a machine that sleeps at midnight catches up; with nothing to do,
    # each is one query.
    "create the partitions of the coming days": {
        "task": "admission.tasks.prepare_partitions",
        "schedule": 3600.0,
    },
    "tally past days of the record": {
        "task": "admission.tasks.tally_days",
        "schedule": 3600.0,
    },
    "export past days of the record": {
        "task": "admission.tasks.export_record",
        "schedule": 3600.0,
    },
    "apply retention to the record": {
        "task": "admission.tasks.apply_retention",
        "schedule": 3600.0,
    },
}


@worker_init.connect
def make_keys(**_: Any) -> None:
    """Create the keys that seal clusters' credentials, if there are none: the worker owns them."""
    from sync.connect import seal_keys  # noqa: PLC0415  needs settings

    try:
        seal_keys.ensure_keys()
    except (seal_keys.KeyFileError, OSError) as error:
        logging.getLogger(__name__).error("no credential of a cluster can be opened: %s", error)  # noqa: TRY400


@beat_init.connect
def watch_beat(**_: Any) -> None:
    """Record a heartbeat of beat whenever it sends the worker's heartbeat task."""
    # Only in beat's own process: other processes publish tasks, too.
    before_task_publish.connect(note_beat, weak=False)


def note_beat(sender: str = "", **_: Any) -> None:
    """Record a heartbeat of beat if the published task is the worker's heartbeat."""
    from django.db import Error, connections  # noqa: PLC0415  needs settings
    from psycopg_pool import PoolTimeout  # noqa: PLC0415  the same

    from admission.models import BackgroundWork, note_work  # noqa: PLC0415  the same

    if sender != "portal.tasks.note_worker":
        return
    try:
        note_work(BackgroundWork.Name.BEAT)
    except (Error, PoolTimeout) as error:
        logging.getLogger(__name__).warning("beat's heartbeat is not stored: %s", error)
    finally:
        # Beat sleeps between tasks: an open connection would only occupy the server.
        connections.close_all()
