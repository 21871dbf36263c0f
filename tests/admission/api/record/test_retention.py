"""Retention over the API: the periods, what the next run would remove, and what was removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, AuditHold, decision_id, partitions
from admission.record import retention
from tests import people
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


def decided(days_ago: int, number: int, **fields: Any) -> AuditEvent:
    moment = datetime.now(UTC) - timedelta(days=days_ago)
    event_id = decision_id.encode(int(moment.timestamp() * 1000), number)
    partitions.ensure(moment)
    names = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    answer = {"verdict": "allowed", "code": 200, "duration_us": 1}
    event = AuditEvent(id=event_id, created=moment, **{**names, **answer, **fields})
    event.save()
    return event


def test_the_preview_shows_what_goes_and_removes_nothing(settings: Any, tmp_path: Path) -> None:
    settings.GATEHOUSE_EXPORT_FOLDER = tmp_path
    settings.GATEHOUSE_RETENTION_ALLOWED_DAYS, settings.GATEHOUSE_RETENTION_DENIED_DAYS = 30, 365
    for number in range(3):
        decided(40, number)
    decided(40, 3, namespace="held")
    decided(1, 4)
    held = {"cluster": "prod", "namespace": "held", "first_day": "2000-01-01", "reason": "x"}
    AuditHold.objects.create(**held)
    secret = secret_of(people.person(role="auditor"), "read")
    found = call(secret, "get", "retention/").json()
    assert (found["allowed_days"], found["denied_days"], found["runs"]) == (30, 365, [])
    (due,) = found["due"]
    assert (due["going"], due["kept"], due["held"], due["verdicts"]) == (3, 1, 1, "allowed")
    assert AuditEvent.objects.count() == 5
    retention.apply(today=retention.today())
    after = call(secret, "get", "retention/").json()
    assert after["due"] == []
    assert [(run["removed"], run["held"]) for run in after["runs"]] == [(3, 1)]


@pytest.mark.parametrize("scope", [{"cluster": "prod"}, {"namespace": "team"}])
def test_retention_is_of_the_whole_record(scope: dict[str, str]) -> None:
    partly = people.person(role="admin", **scope)
    assert call(secret_of(partly), "get", "retention/").status_code == 403
    admin = people.person("admin", "admin")
    assert call(secret_of(admin, **scope), "get", "retention/").status_code == 403
    assert call(secret_of(admin), "get", "retention/?day=1").status_code == 400
