"""A roll-out writes each wave once, in its order, and what was there comes back as a whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from policies.change_sets.rollout.plan import read_plan
from policies.change_sets.states import StepRefusedError
from policies.models import ChangeItem, ChangeSet, MetadataPolicy, PolicyRevision, Rollout
from policies.services import changes
from policies.services.changes import rollout
from tests import factories
from tests.changes import AUTHOR, change_of, cpu, limit, steps

OBSERVED = [{"mode": "audit", "dwell": 600}, {"mode": "warn"}, {"mode": "enforce"}]


def rule(name: str = "mp") -> dict[str, Any]:
    rules = [{"policyAction": {"reject": True}}]
    return factories.manifest("MetadataPolicy", {"rules": rules}, name=name)


def planned(change: ChangeSet, *waves: dict[str, Any]) -> ChangeSet:
    rollout.put_plan(change, plan=read_plan({"waves": waves or ({},)}), user=AUTHOR)
    return changes.submit(change, user=AUTHOR)


def by_cluster() -> tuple[dict[str, Any], dict[str, Any]]:
    return {"clusters": ["dev"]}, {"clusters": ["prod"]}


def two_clusters() -> ChangeSet:
    factories.apply(limit("1"))
    factories.namespace(in_cluster="dev")
    change = change_of(limit("2"))
    stored = factories.cluster("dev")
    changes.put(change, proposals=[changes.propose(stored, limit("2"))], user=AUTHOR)
    return planned(change, *by_cluster())


def stages(change: ChangeSet) -> list[tuple[int, int, str, int, bool]]:
    rows = Rollout.objects.get(change=change).stages.all()
    return [(row.number, row.wave, row.mode, row.written, row.ended is not None) for row in rows]


def refused(change: ChangeSet) -> list[tuple[str, str]]:
    with pytest.raises(changes.ItemsRefusedError) as caught:
        rollout.start(change, user="bob")
    return [(each.key[2], each.code) for each in caught.value.problems]


@pytest.mark.django_db
def test_each_wave_is_written_when_its_turn_comes() -> None:
    change = rollout.start(two_clusters(), user="bob")
    assert (cpu(cluster="dev"), cpu(), change.state) == ("2", "1", "rolling_out")
    rollout.advance(change, expected=1)
    assert (cpu(cluster="dev"), cpu()) == ("2", "2")
    assert stages(change) == [(1, 1, "enforce", 1, True), (2, 2, "enforce", 1, False)]
    done = rollout.advance(change, expected=2)
    assert done.state == "done"
    assert stages(change)[-1] == (2, 2, "enforce", 1, True)
    assert steps(change)[-2:] == [
        ("bob", "start", "approved", "rolling_out"),
        ("bob", "finish", "rolling_out", "done"),
    ]
    assert {each.user for each in PolicyRevision.objects.filter(reason__startswith="change #")} == {
        "bob"
    }


@pytest.mark.django_db
def test_a_new_policy_is_observed_before_it_refuses() -> None:
    factories.namespace()
    change = rollout.start(planned(change_of(rule()), {"stages": OBSERVED}), user="bob")
    modes = [MetadataPolicy.objects.get().enforcement]
    for expected in (1, 2):
        rollout.advance(change, expected=expected)
        modes.append(MetadataPolicy.objects.get().enforcement)
    assert modes == ["audit", "warn", "enforce"]
    assert [each[2] for each in stages(change)] == modes
    changes.revert(change, user="bob")
    assert not MetadataPolicy.objects.exists()


@pytest.mark.django_db
def test_a_stage_that_was_taken_is_not_taken_again() -> None:
    change = rollout.start(two_clusters(), user="bob")
    rollout.advance(change, expected=1)
    before = PolicyRevision.objects.count()
    assert rollout.advance(change, expected=1).state == "rolling_out"
    assert (PolicyRevision.objects.count(), len(stages(change))) == (before, 2)


@pytest.mark.django_db
def test_what_was_reached_is_reverted_to_what_was_there_before() -> None:
    change = rollout.start(two_clusters(), user="bob")
    reverted = changes.revert(change, user="bob")
    assert (cpu(cluster="dev"), cpu(), reverted.state) == ("", "1", "reverted")
    assert stages(change) == [(1, 1, "enforce", 1, True)]
    with pytest.raises(StepRefusedError):
        rollout.advance(change, expected=1)


@pytest.mark.django_db
def test_an_object_that_was_written_meanwhile_keeps_its_wave_from_being_written() -> None:
    change = rollout.start(two_clusters(), user="bob")
    factories.apply(limit("7"))
    with pytest.raises(changes.ItemsRefusedError, match="the change is based on revision 1"):
        rollout.advance(change, expected=1)
    assert (cpu(), [each[0] for each in stages(change)]) == ("7", [1])


@pytest.mark.django_db
def test_a_stopped_one_has_the_rest_of_its_time_when_it_goes_on() -> None:
    factories.namespace()
    change = rollout.start(planned(change_of(rule()), {"stages": OBSERVED}), user="bob")
    stopped = rollout.stop(change, user="eve", tripped="Failures: 3, stops above 0")
    row = Rollout.objects.get(change=change)
    assert (stopped.state, row.ends, row.tripped) == ("stopped", None, "Failures: 3, stops above 0")
    assert timedelta(seconds=590) < (row.left or timedelta(0)) <= timedelta(seconds=600)
    assert rollout.resume(change, user="bob").state == "rolling_out"
    row.refresh_from_db()
    assert (row.left, row.tripped) == (None, "")
    assert row.ends is not None
    assert row.since is not None
    assert timedelta(seconds=590) < row.ends - row.since <= timedelta(seconds=600)


@pytest.mark.django_db
def test_what_no_wave_covers_or_may_be_observed_keeps_the_roll_out_from_starting() -> None:
    factories.apply(limit("1"))
    far = planned(change_of(limit("2")), {"clusters": ["elsewhere"]})
    assert refused(far) == [("lr", "in_no_wave")]
    observed = planned(change_of(limit("2")), {"stages": OBSERVED})
    assert refused(observed) == [("lr", "not_observed")]
    assert cpu() == "1"
    assert set(ChangeItem.objects.values_list("wave", flat=True)) == {None}


@pytest.mark.django_db
def test_a_change_without_a_plan_is_published_and_not_rolled_out() -> None:
    factories.apply(limit("1"))
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    with pytest.raises(ValidationError, match="plan the roll-out first"):
        rollout.start(change, user="bob")


@pytest.mark.django_db
def test_a_plan_is_not_changed_once_it_is_carried_out() -> None:
    change = rollout.start(two_clusters(), user="bob")
    with pytest.raises(StepRefusedError):
        rollout.put_plan(change, plan=read_plan({"waves": [{}]}), user=AUTHOR)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer")
def test_several_that_advance_at_once_take_one_stage() -> None:
    change = rollout.start(two_clusters(), user="bob")

    def advance(_: int) -> None:
        rollout.advance(change, expected=1)
        connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(advance, range(6)))
    assert [each[0] for each in stages(change)] == [1, 2]
    assert cpu() == "2"


@pytest.mark.django_db
def test_a_guard_that_trips_stops_it_or_takes_everything_back() -> None:
    change = rollout.start(two_clusters(), user="bob")
    reverted = rollout.trip(change, user="bob", words="Failures: 1, stops above 0", reverts=True)
    assert (reverted.state, cpu(cluster="dev"), cpu()) == ("reverted", "", "1")
    assert Rollout.objects.get().tripped == "Failures: 1, stops above 0"
    assert [each[1] for each in steps(change)][-2:] == ["stop", "revert"]


@pytest.mark.django_db
def test_what_was_written_since_is_not_taken_back_by_a_guard() -> None:
    change = rollout.start(two_clusters(), user="bob")
    stored = factories.cluster("dev")
    mine = change_of(limit("9"), cluster=stored.name)
    changes.publish(changes.submit(mine, user=AUTHOR), user=AUTHOR)
    stopped = rollout.trip(change, user="bob", words="Failures", reverts=True)
    assert (stopped.state, cpu(cluster="dev")) == ("stopped", "9")
    assert "could not be reverted" in Rollout.objects.get(change=change).tripped
