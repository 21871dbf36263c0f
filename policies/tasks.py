"""Celery tasks of the ledger: log recount differences, take and forget usage points."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from policies import ledger
from policies.ledger.recount import recount
from policies.models import Cluster

log = logging.getLogger(__name__)


@shared_task
def report_differences() -> None:
    """Log quotas whose ``used`` is not the sum of their charges; changes nothing."""
    for name in Cluster.objects.order_by("name").values_list("name", flat=True):
        for recount_difference in recount(name):
            log.error("quota ledger of %s: %s", name, recount_difference)


@shared_task
def keep_usage_points() -> None:
    """Add points of the present usage, and delete old ones."""
    now = timezone.now()
    ledger.take_points(now)
    ledger.forget_points(now)
