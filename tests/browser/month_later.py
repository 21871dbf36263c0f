"""``month_later CLUSTER``: everything that became of a cluster is a month older.

The records are append-only by triggers, which are gone for this one write. The third stage of the
roll-out then begins just before a whole minute, since people choose no smaller ones.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Final

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - Django must be set up first
from django.db.models import F, QuerySet  # noqa: E402

from policies.models import ChangeSet, ChangeStep, PolicyRevision, Rollout, RolloutStage  # noqa: E402

MONTH: Final = timedelta(days=30)
BEFORE: Final = timedelta(milliseconds=500)  # its writes follow within that, also on a slow machine


def main(cluster: str) -> None:
    """Move the rows, and print the minute in which the third stage was in force."""
    change = ChangeSet.objects.get(items__cluster=cluster, items__namespace="payments")
    stage = RolloutStage.objects.get(rollout__change=change, number=3)
    minute = (stage.began - MONTH).replace(second=0, microsecond=0)
    age = stage.began - (minute - BEFORE)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f'DROP TRIGGER "{name}"')
        # Their own querysets refuse to change a row.
        QuerySet(PolicyRevision).filter(cluster=cluster).update(created=F("created") - age)
        QuerySet(ChangeStep).filter(change=change).update(created=F("created") - age)
        ChangeSet.objects.filter(pk=change.pk).update(
            created=F("created") - age, updated=F("updated") - age
        )
        Rollout.objects.filter(change=change).update(since=F("since") - age)
        stages = RolloutStage.objects.filter(rollout__change=change)
        stages.update(began=F("began") - age, ended=F("ended") - age)
        for _, statement in triggers:
            cursor.execute(statement)
    sys.stdout.write(json.dumps({"minute": f"{minute:%Y-%m-%dT%H:%M}"}))


if __name__ == "__main__":
    main(sys.argv[1])
