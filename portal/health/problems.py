"""Late or failed BackgroundWork, KeyCheck of a wrong secret key: sentences, and gauges by part.

A database that is restored without ``var/secret-key`` holds every credential and accepts none: a
cluster whose webhook fails closed then admits nothing. A check value in the database detects it.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from psycopg_pool import PoolTimeout

from admission.models import BackgroundWork
from policies.models import KeyCheck
from policies.plurals import counted
from portal.machine import derive_key
from sync.runs.followers import count_unfollowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

LATE: Final = 120.0  # seconds without a heartbeat before it is a problem
_HEARTBEATS: Final = (BackgroundWork.Name.WORKER, BackgroundWork.Name.BEAT)

KEY_PROBLEM: Final = (
    "the secret key is not the one that webhook credentials were made with: every cluster is"
    " refused. Restore var/secret-key (or GATEHOUSE_SECRET_KEY, GATEHOUSE_KEY_PEPPER) from the"
    " backup; or issue new credentials and run manage.py bootstrap --accept-key"
)


class BackgroundCollector:
    """Gauges by part, read from the database each time: web processes know nothing of workers."""

    def collect(self) -> Iterator[Metric]:
        """Yield both families; a part that was never seen has no age."""
        now = timezone.now()
        age_gauge = GaugeMetricFamily(
            "gatehouse_background_age_seconds",
            "Seconds since worker, beat or a task of the record was last active.",
            labels=["name"],
        )
        failed_gauge = GaugeMetricFamily(
            "gatehouse_background_failed",
            "Whether its last run failed.",
            labels=["name"],
        )
        work_by_name = {work.name: work for work in BackgroundWork.objects.all()}
        for name in BackgroundWork.Name.values:
            work = work_by_name.get(name)
            if work is not None:
                age_gauge.add_metric([name], (now - work.seen).total_seconds())
            failed_gauge.add_metric([name], float(bool(work and work.problem)))
        yield from (age_gauge, failed_gauge)


def background_problems() -> list[str]:
    """Problems of worker, beat, follower and the record's tasks, one sentence each."""
    now = timezone.now()
    late = []
    for row in BackgroundWork.objects.order_by("name"):
        if row.problem:
            late.append(f"{row.get_name_display()} failed: {row.problem}")
        elif row.name in _HEARTBEATS and (now - row.seen).total_seconds() > LATE:
            late.append(f"{row.get_name_display()} was last seen at {row.seen:%Y-%m-%d %H:%M} UTC")
    if unfollowed := count_unfollowed():
        late.append(
            f"{counted(unfollowed, 'connected clusters')} followed by no process: changes there"
            " are noticed by full passes alone. Start manage.py follow"
        )
    return late


registry: Final = CollectorRegistry()
registry.register(BackgroundCollector())


def keep_key_check() -> str:
    """Store the key's check value if there is none yet; returns ``key_problem()``."""
    KeyCheck.objects.get_or_create(id=1, defaults={"value": _key_check()})
    return key_problem()


def accept_key() -> None:
    """Store the check value of the key in use: it counts as the right one from now on."""
    KeyCheck.objects.update_or_create(id=1, defaults={"value": _key_check()})


def key_problem() -> str:
    """The problem with the key; empty if there is none, or if the database is unreachable."""
    try:
        stored = KeyCheck.objects.first()
    except (DatabaseError, PoolTimeout):
        return ""
    return KEY_PROBLEM if stored and not hmac.compare_digest(stored.value, _key_check()) else ""


def _key_check() -> str:
    return derive_key(settings.GATEHOUSE_KEY_PEPPER, "gatehouse key check")
