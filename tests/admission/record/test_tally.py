"""Tallies: every answer is in exactly one, late ones too, and counting twice changes nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from admission import tasks
from admission.models import AuditEvent, Tally, decision_id, partitions
from admission.models.tally import LATEST, STEP, added, stretch_of

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 4, 12, 34, 56, tzinfo=UTC)


def answer(back: timedelta, number: int = 0, **fields: Any) -> None:
    milliseconds = int((NOW - back).timestamp() * 1000)
    partitions.ensure(NOW - back)
    made = {"cluster": "prod", "verdict": "allowed", "code": 200, "duration_us": 1000, **fields}
    AuditEvent(id=decision_id.encode(milliseconds, number), **made).save()


def bring_up_to_date(now: datetime = NOW) -> int:
    return Tally.objects.bring_up_to_date(now=now, until=time.monotonic() + 60)


def totals() -> dict[str, int]:
    return added(Tally.objects.values("allowed", "mutated", "would_deny", "denied", "dry_run"))


def test_answers_are_counted_by_verdict_cluster_and_time() -> None:
    answer(timedelta(days=3))
    answer(timedelta(0), verdict="denied")
    answer(timedelta(0), 1, verdict="mutated", dry_run=True)
    answer(timedelta(0), 2, cluster="other")
    bring_up_to_date()
    found = set(Tally.objects.values_list("cluster", "start", "denied"))
    early, late = stretch_of(NOW - timedelta(days=3)), stretch_of(NOW)
    assert found == {("prod", early, 0), ("prod", late, 1), ("other", late, 0)}
    assert totals() == {"allowed": 2, "mutated": 1, "would_deny": 0, "denied": 1, "dry_run": 1}


def test_counting_again_changes_nothing_and_takes_in_what_came_late() -> None:
    answer(timedelta(0))
    bring_up_to_date()
    answer(LATEST - STEP, 1)
    for _ in range(2):
        bring_up_to_date()
        assert totals()["allowed"] == 2


def test_what_audit_found_is_counted_by_itself() -> None:
    answer(timedelta(0), reasons=" MaxConstraint ")
    answer(timedelta(0), 1)
    bring_up_to_date()
    found = totals()
    assert (found["allowed"], found["would_deny"], found["denied"]) == (1, 1, 0)


def test_long_silence_costs_no_count() -> None:
    answer(timedelta(days=300))
    answer(timedelta(0))
    assert bring_up_to_date() == 2
    assert bring_up_to_date() == 1


def test_what_there_is_no_time_for_is_left_to_the_next_run() -> None:
    answer(timedelta(0))
    assert Tally.objects.bring_up_to_date(now=NOW, until=0) == 0
    assert bring_up_to_date() == 1


def test_task_counts_up_to_now() -> None:
    milliseconds = int(datetime.now(UTC).timestamp() * 1000) - 1
    made = {"cluster": "prod", "verdict": "allowed", "code": 200, "duration_us": 1}
    AuditEvent(id=decision_id.encode(milliseconds, 0), **made).save()
    tasks.tally_answers()
    assert totals()["allowed"] == 1
