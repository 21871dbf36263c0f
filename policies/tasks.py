"""What the ledger does now and then; ten lines a task at most."""

from __future__ import annotations

import logging

from celery import shared_task

from policies import usage
from policies.models import Cluster

log = logging.getLogger(__name__)


@shared_task
def report_differences() -> None:
    """Say in the log where a quota's ``used`` is not the sum of its charges; changes nothing."""
    for name in Cluster.objects.order_by("name").values_list("name", flat=True):
        for found in usage.recount(name):
            log.error("quota ledger of %s: %s", name, found)
