"""Celery tasks of sync: due runs queued and carried out, old ones deleted, webhooks checked."""

from __future__ import annotations

from typing import Final

from celery import shared_task

from sync.installation import health
from sync.passes import lifecycle, schedule

# Below leases.LONGEST: a stuck run ends while its heartbeat still holds the lease.
SOFT_LIMIT: Final = 540
HARD_LIMIT: Final = 570
MESSAGE_EXPIRES: Final = 30.0
"""Seconds; beat sends a new message long before, so an old one would only repeat work."""


@shared_task
def queue_due_runs() -> None:
    """Notify workers of the runs that are due; the rows in the database say which."""
    for run_id in schedule.due_runs():
        carry_out_run.apply_async((run_id,), expires=MESSAGE_EXPIRES)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def carry_out_run(run_id: int) -> None:
    """Carry out one run, if it still waits and no worker holds its cluster; then queue due runs."""
    lifecycle.carry_out(run_id)
    # The runs that this one made due, or that waited for its end, need not wait for beat.
    queue_due_runs()


@shared_task
def forget_old_runs() -> None:
    """Delete old runs and tombstones."""
    schedule.forget_old()


@shared_task
def queue_webhook_checks() -> None:
    """Queue a webhook check for every connected cluster."""
    # One task each: a cluster that answers slowly must not delay the checks of the others.
    for cluster_id in health.clusters_to_check():
        check_webhooks.apply_async((cluster_id,), expires=MESSAGE_EXPIRES)


@shared_task(soft_time_limit=50, time_limit=55)
def check_webhooks(cluster_id: int) -> None:
    """Check one cluster's webhooks: called, unchanged, not about to expire."""
    health.check_webhooks_of(cluster_id)
