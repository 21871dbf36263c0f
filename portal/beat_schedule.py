"""The schedule of Celery beat, as plain values for the settings."""

from __future__ import annotations

from typing import Any, Final

BEAT_SCHEDULE: Final[dict[str, dict[str, Any]]] = {
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
