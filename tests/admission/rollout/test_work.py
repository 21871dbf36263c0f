"""Beat carries a roll-out on: when its stage is over, until a guard trips."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, decision_id, partitions
from admission.rollout.figures import figures_of
from admission.rollout.metrics import registry
from admission.rollout.work import go_on, running
from policies.change_sets.rollout.plan import read_plan
from policies.db.clock import read_clock
from policies.models import Rollout
from policies.services import changes
from policies.services.changes import rollout
from tests import factories
from tests.changes import AUTHOR, change_of, cpu, limit

if TYPE_CHECKING:
    from datetime import datetime

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def begun(*guards: dict[str, Any], dwell: int = 600, **members: Any) -> Rollout:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    stages = [{"mode": "enforce", "dwell": dwell}]
    raw = {"waves": [{"stages": stages}], "guards": list(guards), **members}
    rollout.put_plan(change, plan=read_plan(raw), user=AUTHOR)
    rollout.start(changes.submit(change, user=AUTHOR), user="bob")
    # It has been under way for a minute.
    row = Rollout.objects.get()
    row.since = read_clock() - 60 * SECOND
    row.save()
    return row


def decided(name: str, moment: datetime, **fields: Any) -> None:
    number = AuditEvent.objects.count() + 1
    made: dict[str, Any] = {
        "cluster": "prod",
        "namespace": "team",
        "kind": "Pod",
        "phase": "validate",
    }
    made |= {"verdict": "allowed", "code": 200, "duration_us": 1000, "name": name, **fields}
    partitions.ensure(moment)
    AuditEvent(id=decision_id.encode(int(moment.timestamp() * 1000), number), **made).save()


def refused(name: str, moment: datetime, **fields: Any) -> None:
    made: dict[str, Any] = {"verdict": "denied", "code": 403, "reasons": " Max ", **fields}
    decided(name, moment, **made)


def state() -> str:
    return str(Rollout.objects.select_related("change").get().change.state)


def test_figures_are_those_of_the_places_that_it_has_written_since_it_began() -> None:
    row = begun()
    since = row.since or read_clock()
    refused("web-5d9f8c7b6d-x2x4z", since + SECOND)
    refused("web-5d9f8c7b6d-c2x4z", since + 2 * SECOND, code=500, duration_us=7000)
    refused("web-5d9f8c7b6d-z2x4z", since - SECOND)
    decided("db-0", since + SECOND, reasons=" Max ")
    refused("far-0", since + SECOND, namespace="elsewhere")
    refused("dry-0", since + SECOND, dry_run=True)
    found = figures_of(row, now=read_clock())
    assert (found.requests, found.denied, found.failures, found.latency) == (3, 2, 1, 7.0)
    assert found.denials == {"team/web": 2, "web": 2}
    assert found.new_denials == {"team/web": 1}
    assert sum(found.new_warnings.values()) == 1


def test_a_stage_whose_time_is_over_is_left_and_no_other() -> None:
    row = begun()
    assert go_on(row.pk) == "wait"
    assert (state(), running()) == ("rolling_out", [row.pk])
    Rollout.objects.update(ends=read_clock())
    assert go_on(row.pk) == "finish"
    assert (state(), running()) == ("done", [])


@pytest.mark.parametrize(("on_trip", "ends", "maximum"), [
    ("stop", "stopped", "2"), ("revert", "reverted", "1"),
])  # fmt: skip
def test_a_guard_that_trips_ends_it(on_trip: str, ends: str, maximum: str) -> None:
    row = begun({"kind": "denials_per_owner", "above": 0}, on_trip=on_trip)
    assert go_on(row.pk) == "wait"
    refused("web-5d9f8c7b6d-x2x4z", read_clock() - SECOND)
    assert go_on(row.pk) == "trip"
    assert (state(), cpu()) == (ends, maximum)
    row.refresh_from_db()
    assert row.tripped == "New denials per owner: 1 (team/web), stops above 0"
    stopped = row.change.steps.get(step="stop")
    assert (stopped.user, stopped.note) == ("bob", row.tripped)
    assert go_on(row.pk) == "wait"


def test_a_stage_that_cannot_be_written_stops_it_in_words() -> None:
    factories.namespace(in_cluster="dev")
    change = change_of(limit("2"), cluster="dev")
    factories.apply(limit("1"))
    proposed = changes.propose(factories.cluster("prod"), limit("2"))
    changes.put(change, proposals=[proposed], user=AUTHOR)
    plan = {"waves": [{"clusters": ["dev"]}, {"clusters": ["prod"]}]}
    rollout.put_plan(change, plan=read_plan(plan), user=AUTHOR)
    rollout.start(changes.submit(change, user=AUTHOR), user="bob")
    factories.apply(limit("7"))
    go_on(Rollout.objects.get().pk)
    assert (state(), cpu()) == ("stopped", "7")
    assert "the next stage cannot be written" in Rollout.objects.get().tripped


def test_whoever_started_it_is_told_until_they_look(caplog: pytest.LogCaptureFixture) -> None:
    row = begun({"kind": "denials_per_owner", "above": 0})
    refused("web-5d9f8c7b6d-x2x4z", read_clock() - SECOND)
    go_on(row.pk)
    assert "rollout-tripped" in caplog.text
    assert [each.change_id for each in rollout.unseen_of("bob")] == [row.change_id]
    assert rollout.unseen_of(AUTHOR) == []
    rollout.see(row.change, user=AUTHOR)
    assert rollout.unseen_of("bob")
    rollout.see(row.change, user="bob")
    assert rollout.unseen_of("bob") == []


def test_nobody_is_told_of_what_somebody_stopped_or_has_gone_on_with() -> None:
    row = begun()
    rollout.stop(row.change, user="bob")
    assert rollout.unseen_of("bob") == []
    rollout.resume(row.change, user="bob")
    rollout.stop(row.change, user="bob", tripped="Failures: 1, stops above 0")
    assert rollout.unseen_of("bob")
    rollout.resume(row.change, user="eve")
    assert rollout.unseen_of("bob") == []


def test_roll_outs_are_counted_by_state() -> None:
    row = begun()
    assert gauge() == {"running": 1, "stopped": 0, "tripped": 0}
    rollout.stop(row.change, user="bob")
    assert gauge() == {"running": 0, "stopped": 1, "tripped": 0}
    Rollout.objects.update(tripped="Failures: 1, stops above 0")
    assert gauge() == {"running": 0, "stopped": 0, "tripped": 1}


def gauge() -> dict[str, float]:
    states = ("running", "stopped", "tripped")
    values = {
        state: registry.get_sample_value("gatehouse_rollouts", {"state": state}) for state in states
    }
    return {state: value for state, value in values.items() if value is not None}
