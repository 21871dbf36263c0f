"""Figures of a roll-out are those of its stages, of what the reader sees, and bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent
from admission.rollout import figures, live
from policies.db.clock import read_clock
from policies.models import ChangeItem, Rollout, RolloutStage
from tests import people
from tests.admission.rollout.test_work import SECOND, begun, decided, refused

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
MINUTE = 60 * SECOND


@pytest.fixture
def row() -> Rollout:
    """A roll-out whose stage began two minutes ago."""
    rollout = begun({"kind": "denials_per_owner", "above": 0})
    RolloutStage.objects.update(began=read_clock() - 2 * MINUTE)
    return rollout


@pytest.fixture
def reader() -> User:
    return people.person("reader", "viewer")


def found(rollout: Rollout, user: Any) -> list[Any]:
    items = list(ChangeItem.objects.all())
    return live.stage_figures(rollout, items=items, user=user, now=read_clock())


def test_a_stage_counts_from_its_beginning_to_its_end(row: Rollout, reader: User) -> None:
    now = read_clock()
    refused("web-5d9f8c7b6d-x2x4z", now - MINUTE, duration_us=9000)
    refused("web-5d9f8c7b6d-w2x4z", now - 90 * SECOND, code=500)
    refused("web-5d9f8c7b6d-z2x4z", now - 3 * MINUTE)
    decided("db-0", now - MINUTE, reasons=" Max ")
    decided("far-0", now - MINUTE, namespace="elsewhere")
    [stage] = found(row, reader)
    counted = stage.figures
    assert (stage.namespaces, counted.requests, counted.denied, counted.warned) == (1, 3, 2, 1)
    assert (counted.failures, counted.latency, round(counted.deny_rate)) == (1, 9.0, 67)
    assert counted.newly_denied == [("team/web", 1)]
    RolloutStage.objects.update(ended=now - 80 * SECOND)
    [ended] = found(row, reader)
    assert (ended.figures.requests, ended.figures.failures) == (1, 1)


def test_who_sees_no_place_gets_no_figure(row: Rollout) -> None:
    refused("web-5d9f8c7b6d-x2x4z", read_clock() - MINUTE)
    stranger = people.person("stranger", "viewer", namespace="other", cluster="prod")
    assert [each.figures.requests for each in found(row, stranger)] == [0]
    items = list(ChangeItem.objects.all())
    bars = live.rollout_bars(row, items=items, user=stranger, now=read_clock())
    assert sum(bar.total for bar in bars) == 0


def test_only_the_newest_decisions_are_read_and_the_time_before_is_as_short(
    row: Rollout, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = read_clock()
    for at, letter in enumerate("bcdfgh", start=1):
        refused(f"web-5d9f8c7b6d-x2x4{letter}", now - 10 * at * SECOND)
    [whole] = found(row, reader)
    assert (whole.figures.requests, whole.figures.is_sampled) == (6, False)
    monkeypatch.setattr(figures, "MOST", 6)
    assert not found(row, reader)[0].figures.is_sampled
    monkeypatch.setattr(figures, "MOST", 3)
    [sampled] = found(row, reader)
    assert (sampled.figures.requests, sampled.figures.is_sampled) == (3, True)
    # Decisions long before the stage are no longer compared.
    refused("web-5d9f8c7b6d-b2b4c", now - 2 * MINUTE - 60 * SECOND)
    assert found(row, reader)[0].figures.newly_denied == [("team/web", 3)]


def test_so_many_before_shorten_the_time_as_well(
    row: Rollout, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = read_clock()
    for age in range(125, 155, 5):
        decided(f"db-{age}", now - age * SECOND)
    decided("web-0", now - 100 * SECOND)
    monkeypatch.setattr(figures, "MOST", 3)
    [sampled] = found(row, reader)
    assert sampled.figures.is_sampled
    assert sampled.figures.requests == 0


def test_bars_have_all_decisions_by_outcome(row: Rollout, reader: User) -> None:
    now = read_clock()
    refused("web-5d9f8c7b6d-x2x4z", now - MINUTE)
    decided("db-0", now - MINUTE, reasons=" Max ")
    decided("db-1", now - 5 * MINUTE)
    decided("old-0", now - 30 * MINUTE)
    items = list(ChangeItem.objects.all())
    bars = live.rollout_bars(row, items=items, user=reader, now=read_clock())
    sums = {
        name: sum(getattr(bar, name) for bar in bars)
        for name in ("allowed", "mutated", "would_deny", "denied")
    }
    assert sums == {"allowed": 1, "mutated": 0, "would_deny": 1, "denied": 1}
    assert {bar.query for bar in bars} == {""}


def test_only_the_newest_stages_are_read(
    row: Rollout, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = read_clock()
    RolloutStage.objects.create(rollout=row, number=2, wave=1, mode="enforce", began=now)
    monkeypatch.setattr(live, "STAGES_READ", 1)
    assert [each.stage.number for each in found(row, reader)] == [2]


def test_guards_are_read_while_it_is_under_way(row: Rollout) -> None:
    refused("web-5d9f8c7b6d-x2x4z", read_clock() - SECOND)
    [reading] = live.guard_readings(row, now=read_clock())
    assert (reading.figure, reading.owner, reading.holds) == (1, "team/web", False)
    row.change.state = "done"
    assert live.guard_readings(row, now=read_clock()) == []


def test_reading_a_stage_takes_as_many_queries_however_much_was_decided(
    row: Rollout, reader: User, django_assert_max_num_queries: Any
) -> None:
    for age in range(10, 60, 5):
        refused(f"web-5d9f8c7b6d-a{age}aa", read_clock() - age * SECOND)
    items = list(ChangeItem.objects.all())
    assert AuditEvent.objects.count() == 10
    with django_assert_max_num_queries(9):
        live.stage_figures(row, items=items, user=reader, now=read_clock())
