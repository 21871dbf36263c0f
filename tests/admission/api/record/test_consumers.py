"""Consumers of a quota over the API, and who waits for room in it."""

from __future__ import annotations

import pytest

from policies.models import Charge
from tests import factories, people
from tests.admission.api.record.test_retention import decided
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db
REFUSED = {"verdict": "denied", "code": 403, "reasons": "QuotaExceeded", "message": "no"}


def test_consumers_refusals_and_owners_who_wait() -> None:
    made = factories.resource_quota({"pods": "10"})
    for number, name in enumerate(("db-0", "web-1", "web-2")):
        Charge.objects.create(
            cluster=made.owner, quota_uid=made.uid, namespace="team", resource="pods",
            object_uid=f"u{number}", object_name=name, amounts={"pods": "1"},
        )  # fmt: skip
    policy = {"policy": {"kind": "ResourceQuota", "name": "rq"}}
    refused = decided(0, 1, name="api-0", violations=[policy], **REFUSED)
    secret = secret_of(people.person(), "read")
    found = call(secret, "get", f"resourcequotas/{made.pk}/consumers/").json()
    shares = [(each["name"], each["number"], each["percent"]) for each in found["consumers"]]
    assert (found["quota"], found["by"], shares) == ("rq", "pods", [("web", 2, 20), ("db", 1, 10)])
    assert found["refused_by"] == [{"kind": "ResourceQuota", "name": "rq", "number": 1}]
    (waiting,) = found["waiting"]
    assert (waiting["name"], waiting["number"]) == ("api", 1)
    assert waiting["decision"] == refused.pk


def test_a_quota_that_nobody_uses_has_no_consumers() -> None:
    made = factories.resource_quota({"pods": "10"})
    secret = secret_of(people.person(), "read")
    found = call(secret, "get", f"resourcequotas/{made.pk}/consumers/").json()
    assert (found["by"], found["consumers"], found["others"]) == ("", [], 0)
    assert call(secret, "get", "resourcequotas/999/consumers/").status_code == 404
