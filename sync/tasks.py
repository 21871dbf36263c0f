"""Celery tasks about runs and webhooks."""

from __future__ import annotations

from typing import Final

from celery import shared_task

from sync.installation import health
from sync.passes import lifecycle, schedule

SOFT_LIMIT: Final = 540
HARD_LIMIT: Final = 570
TOLD_IN_VAIN: Final = 30.0  # seconds after which the message is not worth reading any more


@shared_task
def look_for_due_runs() -> None:
    """Notify workers of the runs that are due; the rows in the database say which."""
    for run_id in schedule.due_runs():
        carry_out_run.apply_async((run_id,), expires=TOLD_IN_VAIN)


@shared_task(soft_time_limit=SOFT_LIMIT, time_limit=HARD_LIMIT)
def carry_out_run(run_id: int) -> None:
    """Carry out one run, if it still waits and nobody works on its cluster, and look what is next.

    What follows from it, and whoever waited for its end, need not wait for beat as well.
    """
    lifecycle.carry_out(run_id)
    look_for_due_runs()


@shared_task
def forget_old_runs() -> None:
    """Delete old runs and tombstones."""
    schedule.forget_old()


@shared_task
def look_after_webhooks() -> None:
    """Have a canary fly in every connected cluster, each on its own: one may take its time."""
    for cluster_id in health.clusters_to_check():
        check_webhooks.apply_async((cluster_id,), expires=TOLD_IN_VAIN)


@shared_task(soft_time_limit=50, time_limit=55)
def check_webhooks(cluster_id: int) -> None:
    """Look at one cluster's webhooks: asked, unchanged, not about to end."""
    health.look_at(cluster_id)
