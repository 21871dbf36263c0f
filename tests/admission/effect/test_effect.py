"""What a change did to the answers: as long before as after each of its writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.effect import effect
from admission.effect.effect import LONGEST, Answers, ChangeEffect, effect_of, name_owners
from admission.effect.writes import ChangeWrite, writes_of
from admission.models import AuditEvent, decision_id, partitions
from tests import changes, factories
from tests.admission.requested import requested

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
WRITE = ChangeWrite(at=AT, cluster="prod", namespaces=frozenset({"team"}))


def decided(name: str, moment: datetime, **fields: Any) -> str:
    number = AuditEvent.objects.count() + 1
    made = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    made |= {"verdict": "allowed", "code": 200, "duration_us": 100, "name": name, **fields}
    partitions.ensure(moment)
    row = AuditEvent(id=decision_id.encode(int(moment.timestamp() * 1000), number), **made)
    row.save()
    return row.id


def refused(name: str, moment: datetime, **fields: Any) -> str:
    return decided(name, moment, verdict="denied", code=403, reasons=" MaxConstraint ", **fields)


def compared(*writes: ChangeWrite, now: datetime = AT + HOUR) -> ChangeEffect:
    found = effect_of(writes or (WRITE,), decisions=AuditEvent.objects.all(), now=now)
    assert found is not None
    return found


def test_answers_are_counted_as_long_before_as_after_the_write() -> None:
    decided("a", AT - 2 * HOUR)
    decided("b", AT - HOUR / 2)
    decided("c", AT, verdict="mutated")
    refused("d", AT + HOUR / 2)
    found = compared()
    assert found.length == HOUR
    assert (found.since, found.until) == (AT - HOUR, AT + HOUR)
    assert found.before == Answers(allowed=1, mean_us=100, longest_us=100)
    assert found.after == Answers(mutated=1, denied=1, mean_us=100, longest_us=100)


def test_no_more_than_seven_days_are_compared() -> None:
    refused("a", AT + LONGEST + HOUR)
    found = compared(now=AT + 2 * LONGEST)
    assert (found.length, found.after.total) == (LONGEST, 0)


def test_other_places_and_dry_runs_do_not_count() -> None:
    decided("a", AT + HOUR / 2, namespace="other")
    decided("b", AT + HOUR / 2, cluster="test")
    decided("c", AT + HOUR / 2, dry_run=True)
    assert compared().after.total == 0


def test_durations_are_the_mean_and_the_longest_over_all_outcomes() -> None:
    decided("a", AT + HOUR / 4, duration_us=100)
    decided("b", AT + HOUR / 4, duration_us=200)
    refused("c", AT + HOUR / 4, duration_us=600)
    after = compared().after
    assert (after.mean_us, after.longest_us) == (300, 600)


def test_an_owner_has_its_refusals_of_both_sides_with_the_first_and_the_last_decision() -> None:
    refused("web-5d9f8c7b6d-x2x4z", AT - HOUR / 2)
    first = refused("web-5d9f8c7b6d-b2x4z", AT + HOUR / 4)
    last = refused("web-5d9f8c7b6d-c2x4z", AT + HOUR / 2)
    decided("web-5d9f8c7b6d-d2x4z", AT + HOUR / 4, reasons=" MaxConstraint ")
    [owner] = compared().owners
    assert (owner.name, owner.namespace, owner.kind) == ("web", "team", "Pod")
    assert (owner.denied, owner.would_deny) == ([1, 2], [0, 1])
    assert (owner.oldest, owner.newest, owner.increase) == (first, last, 1)


def test_owners_that_are_newly_denied_come_first() -> None:
    refused("old", AT - HOUR / 2)
    decided("warned", AT + HOUR / 2, reasons=" MaxConstraint ")
    refused("new", AT + HOUR / 2)
    assert [each.name for each in compared().owners] == ["new", "warned", "old"]


def test_owners_are_named_as_their_newest_refusal_has_them() -> None:
    reference = {"kind": "StatefulSet", "name": "cache", "controller": True}
    metadata = {"name": "cache-0", "ownerReferences": [reference]}
    refused("cache-0", AT + HOUR / 2, **requested({"object": {"metadata": metadata}}))
    found = compared()
    name_owners(found.owners)
    assert [(each.kind, each.name) for each in found.owners] == [("StatefulSet", "cache")]


@pytest.mark.parametrize("side", [-1, 1])
def test_where_there_are_too_many_decisions_the_time_is_shorter_on_both_sides(
    side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effect, "MOST", 2)
    for minutes in (10, 20, 30, 40):
        decided("a", AT + side * timedelta(minutes=minutes))
    decided("b", AT - side * timedelta(minutes=35))
    found = compared()
    assert found.length == timedelta(minutes=30)
    assert found.before.total + found.after.total in (2, 3)


def test_each_wave_of_a_roll_out_is_compared_with_its_own_before() -> None:
    second = ChangeWrite(at=AT + HOUR, cluster="prod", namespaces=frozenset({"later"}))
    refused("a", AT + HOUR / 2)
    refused("b", AT + HOUR / 2, namespace="later")
    found = compared(WRITE, second, now=AT + 2 * HOUR)
    assert (found.length, found.before.denied, found.after.denied) == (HOUR, 1, 1)


def test_what_is_not_written_has_no_effect() -> None:
    assert effect_of([], decisions=AuditEvent.objects.all(), now=AT) is None


def test_the_number_of_queries_is_that_of_the_writes(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(30):
        refused(f"web-{number}", AT + HOUR / 2)
    with django_assert_num_queries(3):
        compared()


def test_a_change_was_written_where_its_objects_are() -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "4"}}, namespace="team")
    factories.namespace("other")
    change = changes.change_of(
        changes.limit("2"), changes.limit("2", name="lr-2", namespace="other")
    )
    assert writes_of(change.items.all()) == []
    changes.published(change)
    [write] = writes_of(change.items.all())
    assert (write.cluster, write.namespaces) == ("prod", {"team", "other"})
    assert write.at == min(changes.last_revision().created, write.at)
