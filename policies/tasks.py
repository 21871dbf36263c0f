"""Celery tasks about the ledger."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from policies import ledger
from policies.models import Cluster

log = logging.getLogger(__name__)


@shared_task
def report_differences() -> None:
    """Say in the log where a quota's ``used`` is not the sum of its charges; changes nothing."""
    for name in Cluster.objects.order_by("name").values_list("name", flat=True):
        for found in ledger.recount(name):
            log.error("quota ledger of %s: %s", name, found)


@shared_task
def keep_usage_points() -> None:
    """Keep how full quotas are now, and delete what was kept too long ago."""
    now = timezone.now()
    ledger.take_points(now)
    ledger.forget_points(now)
