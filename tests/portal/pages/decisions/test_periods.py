"""The time picker: its name for a query's time, and the periods before and after it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.pages.decisions.periods import Period, period_of

NOW = datetime(2026, 11, 10, 14, 30, tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def period(**query: str) -> Period:
    asked = {name: moment(text) for name, text in query.items() if name in {"since", "until"}}
    return period_of(query, asked, NOW)


@pytest.mark.parametrize(
    ("query", "label"),
    [
        ({}, "Any time"),
        ({"last": "1h"}, "Last hour"),
        ({"last": "24h"}, "Last 24 hours"),
        ({"last": "a year"}, "Any time"),
        ({"since": "2026-11-10T08:00"}, "Since 10 Nov 08:00"),
        ({"until": "2026-11-10T08:00"}, "Before 10 Nov 08:00"),
        ({"since": "2026-11-10T08:00", "until": "2026-11-10T09:30"}, "10 Nov 08:00 to 09:30"),
        ({"since": "2026-11-09T08:00", "until": "2026-11-10T09:30"},
         "9 Nov 08:00 to 10 Nov 09:30"),
    ],
)  # fmt: skip
def test_a_period_has_a_name(query: dict[str, str], label: str) -> None:
    assert period(**query).label == label


def test_choices_keep_the_rest_of_the_query() -> None:
    choices = period(cluster="prod", last="6h").choices
    assert [(each.label, each.is_chosen) for each in choices if each.is_chosen] == [
        ("Last 6 hours", True)
    ]
    queries = {each.label: each.query for each in choices}
    assert queries["Last 24 hours"] == "cluster=prod&last=24h"
    assert queries["Any time"] == "cluster=prod"


def test_periods_beside_are_as_long() -> None:
    before = period(cluster="prod", last="6h")
    assert before.earlier == ("cluster=prod&since=2026-11-10T02%3A30&until=2026-11-10T08%3A30")
    assert before.later == ""
    between = period(since="2026-11-10T02:30", until="2026-11-10T08:30")
    assert between.earlier == "since=2026-11-09T20%3A30&until=2026-11-10T02%3A30"
    assert between.later == "since=2026-11-10T08%3A30&until=2026-11-10T14%3A30"


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"until": "2026-11-10T08:00"},
        {"since": "2026-11-10T08:00", "until": "2026-11-10T08:00"},
        {"since": "2026-11-10T09:00", "until": "2026-11-10T08:00"},
        {"since": "2027-01-01T00:00"},
    ],
)
def test_no_period_is_beside_one_without_a_length(query: dict[str, str]) -> None:
    assert (period(**query).earlier, period(**query).later) == ("", "")


def test_a_period_before_all_dates_is_not_offered() -> None:
    assert period(since="0001-01-02T00:00").earlier == ""
