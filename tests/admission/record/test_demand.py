"""Demand: who was refused within the hour and waits, what each quota refuses, whom it refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from admission.models import AuditEvent, decision_id
from admission.record.demand import demand_by_quota, refused_owners, waiting_owners

pytestmark = pytest.mark.django_db


def answer(minutes: int, name: str, *exceeded: tuple[str, str, str], **fields: Any) -> None:
    """A decision; a refusal where quotas are exceeded: name, resource, requested."""
    violations = [
        {
            "reason": "ExceededQuota",
            "message": f"exceeded quota: {quota}",
            "policy": {"kind": "ResourceQuota", "namespace": "team", "name": quota},
            "numbers": {"resource": resource, "requested": requested},
        }
        for quota, resource, requested in exceeded
    ]
    known = {"verdict": "denied", "code": 403, "reasons": " ExceededQuota "}
    made: dict[str, Any] = {
        "cluster": "prod",
        "namespace": "team",
        "kind": "Pod",
        "phase": "validate",
    }
    made |= known if exceeded else {"verdict": "allowed", "code": 200}
    moment = int((datetime.now(UTC) - timedelta(minutes=minutes)).timestamp() * 1000)
    row = {**made, "name": name, "violations": violations, "duration_us": 1, **fields}
    AuditEvent(id=decision_id.encode(moment, minutes), **row).save()


def waiting(**more: str) -> list[tuple[str, int]]:
    return [(each.name, each.number) for each in waiting_owners(AuditEvent.objects.all(), **more)]


def test_objects_of_one_owner_wait_as_one_the_most_refused_first() -> None:
    answer(3, "db-0", ("rq", "pods", "1"))
    answer(2, "web-5d9f8c7b6d-x2x4z", ("rq", "pods", "1"))
    answer(1, "web-5d9f8c7b6d-x2x5z", ("rq", "pods", "1"))
    assert waiting() == [("web", 2), ("db", 1)]


def test_an_owner_waits_no_longer_when_it_was_admitted() -> None:
    answer(4, "a-0", ("rq", "pods", "1"))
    answer(6, "a-1", ("rq", "pods", "1"))
    answer(2, "a-0")
    answer(3, "b-0", phase="mutate")
    answer(5, "b-0", ("rq", "pods", "1"))
    answer(7, "c-0")
    answer(1, "c-0", ("rq", "pods", "1"))
    assert sorted(name for name, _ in waiting()) == ["b", "c"]


def test_who_gave_up_or_only_tried_does_not_wait() -> None:
    answer(61, "old-0", ("rq", "pods", "1"))
    answer(1, "trial-0", ("rq", "pods", "1"), dry_run=True)
    assert waiting() == []


def test_other_reasons_are_asked_for() -> None:
    answer(1, "a-0", ("rq", "pods", "1"), reasons=" MaxConstraint ")
    assert waiting() == []
    assert waiting(reason="MaxConstraint") == [("a", 1)]
    assert waiting(reason="") == [("a", 1)]


def test_demand_is_one_object_of_each_owner() -> None:
    answer(2, "a-0", ("rq", "pods", "1"), ("rq", "requests.cpu", "500m"), ("other", "pods", "1"))
    answer(1, "a-1", ("rq", "pods", "1"), ("rq", "requests.cpu", "2"))
    answer(3, "b-0", ("rq", "requests.cpu", "1500m"))
    found = demand_by_quota(waiting_owners(AuditEvent.objects.all()))
    assert {
        place: {name: str(amount) for name, amount in demand.amounts.items()}
        for place, demand in found.items()
    } == {("prod", "team", "rq"): {"pods": "1", "requests.cpu": "3500m"}}
    assert [owner.name for owner in found["prod", "team", "rq"].owners] == ["a", "b"]


def test_what_is_no_quantity_is_no_demand() -> None:
    answer(1, "a-0", ("rq", "pods", "many"))
    assert demand_by_quota(waiting_owners(AuditEvent.objects.all())) == {}


def test_refused_owners_are_those_of_one_quota() -> None:
    answer(1, "a-0", ("rq", "pods", "1"))
    answer(2, "a-1", ("rq", "pods", "1"), ("other", "pods", "1"))
    answer(3, "b-0", ("other", "pods", "1"))
    answer(4, "c-0", ("rq", "pods", "1"), cluster="elsewhere")
    since = datetime.now(UTC) - timedelta(hours=1)
    found = refused_owners(AuditEvent.objects.all(), ("prod", "team", "rq"), since)
    assert [(each.name, each.number) for each in found.owners] == [("a", 2)]
    assert (found.number, found.is_sampled) == (2, False)
