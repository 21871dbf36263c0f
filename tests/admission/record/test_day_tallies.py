"""Tallies of days: counts that read them are those of the record, whatever the query."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission import tasks
from admission.models import AuditEvent, CappedCount, DayTally, decision_id, partitions
from admission.models import audit_event as record
from admission.record import backdate, export, retention
from admission.record.search import day_tallies
from admission.record.search.search import Search

pytestmark = pytest.mark.django_db
NOW = (datetime.now(UTC) - timedelta(minutes=1)).replace(second=0, microsecond=0)
TODAY = NOW.date()
NOON = datetime(NOW.year, NOW.month, NOW.day, 12, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = "LimitRange/team/limits"
NAMESAKE = "ResourceQuota/team/limits"


def decided(back: timedelta, number: int = 0, **fields: Any) -> None:
    partitions.ensure(NOW - back)
    milliseconds = int((NOW - back).timestamp() * 1000)
    made = {"cluster": "prod", "namespace": "team", "verdict": "allowed", "code": 200}
    made |= {"duration_us": 1, "kind": "Pod", "operation": "CREATE", "phase": "mutate"}
    AuditEvent(id=decision_id.encode(milliseconds, number), **made | fields).save()


def tally(now: datetime = NOON) -> int:
    return day_tallies.tally_days(now=now, until=time.monotonic() + 60)


def count(clusters: list[str] | None = None, **query: str) -> CappedCount:
    return day_tallies.count(Search(query, AuditEvent.objects.all()), clusters)


@pytest.fixture
def week() -> None:
    """Seven days, the newest of which is not over."""
    for age in range(7):
        decided(age * DAY, 1, user="ada", reasons=" MaxConstraint ", verdict="denied")
        decided(age * DAY, 2, user="adam", policy_names=f" {POLICY} {NAMESAKE} ", dry_run=True)
        decided(age * DAY, 3, user="bob", cluster="other", kind="Service", operation="DELETE")
    decided(3 * DAY, 4, user="rare", phase="validate", reasons=" MinConstraint ")
    tally()


@pytest.mark.usefixtures("week")
@pytest.mark.parametrize(
    ("query", "number"),
    [
        ({"user": "ada"}, 14),
        ({"user": "adam"}, 7),
        ({"user": "rare"}, 1),
        ({"user": "nobody"}, 0),
        ({"reason": "MaxConstraint"}, 7),
        ({"reason": "MinConstraint"}, 1),
        ({"policy": POLICY}, 7),
        ({"policy": "limits"}, 7),
        ({"kind": "Service"}, 7),
        ({"operation": "DELETE"}, 7),
        ({"phase": "validate"}, 1),
        ({"dry_run": "true"}, 7),
        ({"dry_run": "false"}, 15),
        ({"user": "bob", "cluster": "prod"}, 0),
        ({"user": "bob", "cluster": "other"}, 7),
        ({"user": "ada", "kind": "Pod"}, 14),
        ({"user": "ada", "kind": "Service"}, 0),
        ({"user": "ada", "reason": "MinConstraint"}, 0),
        ({"user": "ada", "exclude": "user:adam"}, 7),
        ({"user": "ada", "verdict": "denied"}, 7),
        ({"user": "ada", "last": "24h"}, 2),
        ({"user": "ada", "since": f"{NOW - 2 * DAY:%Y-%m-%dT%H:%M}"}, 6),
        ({"user": "ada", "since": f"{TODAY - 2 * DAY}T00:00", "until": f"{TODAY}T00:00"}, 4),
        ({"user": "ada", "until": f"{NOW - 2 * DAY:%Y-%m-%dT%H:%M}"}, 8),
    ],
)
def test_count_with_tallies_is_the_number_of_matches(query: dict[str, str], number: int) -> None:
    assert count(**query) == CappedCount(number)
    DayTally.objects.all().delete()
    assert count(**query) == CappedCount(number), "the case itself is wrong"


@pytest.mark.usefixtures("week")
def test_days_that_are_over_are_not_read() -> None:
    DayTally.objects.filter(field="user", value="ada").update(number=100)
    assert count(user="ada") == CappedCount(6 * 100 + 6 + 2)
    DayTally.objects.filter(field="user").update(number=record.COUNT_LIMIT)
    with CaptureQueriesContext(connection) as asked:
        assert count(user="ada") == CappedCount(record.COUNT_LIMIT, is_capped=True)
    assert len(asked) == 1


@pytest.mark.usefixtures("week")
def test_reader_of_some_clusters_gets_a_count_of_these() -> None:
    DayTally.objects.filter(cluster="other").update(number=100)
    assert count(["prod"], user="ada") == CappedCount(14)
    assert count(["other"], user="bob") == CappedCount(6 * 100 + 1)


@pytest.mark.usefixtures("week")
def test_numbers_of_others_do_not_show_where_namespaces_alone_are_seen() -> None:
    decided(2 * DAY, 9, user="ada", namespace="secret")
    DayTally.objects.filter(value="ada").update(number=100)
    query = {"user": "ada"}
    visible = Search(query, AuditEvent.objects.filter(namespace="team"))
    assert day_tallies.count(visible, []) == CappedCount(14)


def test_day_is_counted_once_it_is_over_and_late_rows_are_in() -> None:
    decided(timedelta(0), user="ada")
    _, midnight = partitions.bounds(TODAY)
    tally(midnight + timedelta(minutes=20))
    assert not DayTally.objects.filter(day=TODAY).exists()
    assert tally(midnight + timedelta(minutes=40)) == 1
    assert DayTally.objects.filter(day=TODAY, field="user", value="ada").exists()
    assert tally(midnight + timedelta(minutes=40)) == 0


def test_no_day_is_begun_when_time_is_over() -> None:
    decided(DAY)
    assert day_tallies.tally_days(now=NOW, until=0) == 0


def test_day_whose_rows_changed_while_they_were_counted_is_left_to_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided(3 * DAY)
    rows_of, readings = export.rows_of, []

    def rows_and_one_more(day: date) -> Any:
        readings.append(day)
        if len(readings) == 2:
            decided(3 * DAY, 2)
        return rows_of(day)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(partitions, "days", lambda: [TODAY - 3 * DAY])
        meanwhile.setattr(export, "rows_of", rows_and_one_more)
        meanwhile.setattr(export, "days_on_record", lambda: [TODAY - 3 * DAY])
        assert tally() == 0
    assert not DayTally.objects.exists()
    tally()
    assert DayTally.objects.get(day=TODAY - 3 * DAY, field="").number == 2


@pytest.mark.usefixtures("week", "exports_folder")
def test_removal_of_rows_has_their_day_counted_again() -> None:
    day = TODAY - 3 * DAY
    retention.remove(day, retention.Verdicts.ALLOWED)
    assert not DayTally.objects.filter(day=day).exists()
    assert count(user="ada") == CappedCount(13)
    assert tally() == 1
    assert count(user="ada") == CappedCount(13)
    assert count(user="rare") == CappedCount(0)


@pytest.mark.usefixtures("week")
def test_past_that_is_written_later_is_counted_again() -> None:
    row = dict(AuditEvent.objects.filter(user="rare").values().get())
    row["id"] = decision_id.encode(int(row["created"].timestamp() * 1000), 99)
    row |= dict.fromkeys(("violations", "observed"), "[]")
    backdate.keep([row])
    assert count(user="rare") == CappedCount(2)


def test_task_counts_the_days_before_this_one() -> None:
    decided(3 * DAY, user="ada")
    tasks.tally_days()
    assert DayTally.objects.filter(field="user", value="ada").exists()
