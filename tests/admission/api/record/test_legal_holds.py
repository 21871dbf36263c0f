"""Legal holds over the API: auditors hold and release in their own places."""

from __future__ import annotations

from typing import Any

import pytest

from admission.models import AuditHold
from tests import people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db
HOLD = {"cluster": "prod", "namespace": "team", "first_day": "2026-01-01", "reason": "case 7"}


def held(cluster: str = "prod", namespace: str = "team") -> AuditHold:
    return AuditHold.objects.create(**{**HOLD, "cluster": cluster, "namespace": namespace})


def test_a_hold_is_made_listed_and_released_on_record() -> None:
    secret = secret_of(people.person(role="auditor"))
    made = call(secret, "post", "legalholds/", HOLD)
    assert made.status_code == 201, made.content
    hold = made.json()
    assert (hold["created_by"], hold["released"], hold["last_day"]) == ("ada", None, None)
    assert call(secret, "get", f"legalholds/{hold['id']}/").json() == hold
    address = f"legalholds/{hold['id']}/release/"
    assert call(secret, "post", f"{address}?dryRun=All").json()["released_by"] == "ada"
    assert AuditHold.objects.in_force().count() == 1
    released = call(secret, "post", address).json()
    assert released["released_by"] == "ada"
    assert call(secret, "post", address).json() == released, "a release stays as it is"
    assert call(secret, "get", "legalholds/?released=false").json()["count"] == 0
    for method in ("put", "patch", "delete"):
        assert call(secret, method, f"legalholds/{hold['id']}/", HOLD).status_code == 405


def test_a_dry_run_holds_nothing() -> None:
    secret = secret_of(people.person(role="auditor"))
    assert call(secret, "post", "legalholds/?dryRun=All", HOLD).json()["id"] is None
    assert not AuditHold.objects.exists()


@pytest.mark.parametrize(
    ("role", "place", "namespace", "code"),
    [
        ("auditor", {"cluster": "prod", "namespace": "team"}, "team", 201),
        ("auditor", {"cluster": "prod", "namespace": "team"}, "", 403),
        ("auditor", {"cluster": "prod", "namespace": "other"}, "team", 403),
        ("auditor", {"cluster": "test"}, "team", 403),
        ("admin", {"cluster": "prod"}, "", 201),
        ("viewer", {}, "team", 403),
        ("approver", {}, "team", 403),
    ],
)
def test_who_may_hold_where(role: str, place: dict[str, str], namespace: str, code: int) -> None:
    secret = secret_of(people.person(role=role, **place))
    body = {**HOLD, "namespace": namespace}
    assert call(secret, "post", "legalholds/", body).status_code == code
    assert AuditHold.objects.exists() == (code == 201)


def test_holds_of_places_that_are_not_seen_are_not_there() -> None:
    wide, other = held(namespace=""), held("test")
    secret = secret_of(people.person(role="auditor", cluster="prod", namespace="team"))
    own = held()
    shown = call(secret, "get", "legalholds/").json()["results"]
    assert [each["id"] for each in shown] == [own.pk]
    for hidden in (wide, other):
        assert call(secret, "get", f"legalholds/{hidden.pk}/").status_code == 404
        assert call(secret, "post", f"legalholds/{hidden.pk}/release/").status_code == 404
    assert AuditHold.objects.in_force().count() == 3


def test_who_sees_a_hold_and_may_not_hold_there_does_not_release_it() -> None:
    ada = people.person(role="auditor", cluster="prod", namespace="other")
    people.bind(ada, "viewer", cluster="prod")
    hold = held()
    secret = secret_of(ada)
    assert call(secret, "get", f"legalholds/{hold.pk}/").status_code == 200
    assert call(secret, "post", f"legalholds/{hold.pk}/release/").status_code == 403


def test_holds_are_for_auditors() -> None:
    held()
    assert call(secret_of(people.person()), "get", "legalholds/").json()["count"] == 0
    auditor = people.person("auditor", "auditor")
    assert call(secret_of(auditor, "read"), "get", "legalholds/").json()["count"] == 1


@pytest.mark.parametrize("scope", [{"cluster": "test"}, {"namespace": "other"}])
def test_a_scoped_token_holds_in_its_scope_only(scope: dict[str, str]) -> None:
    hold, auditor = held(), people.person(role="auditor")
    secret = secret_of(auditor, **scope)
    assert call(secret, "post", "legalholds/", HOLD).status_code == 403
    assert call(secret, "post", f"legalholds/{hold.pk}/release/").status_code == 404
    assert call(secret_of(auditor, namespace="te*"), "post", "legalholds/", HOLD).status_code == 201


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"cluster": ""}, 400, "cluster"),
        ({"reason": ""}, 400, "reason"),
        ({"first_day": "yesterday"}, 400, "first_day"),
        ({"last_day": "2025-01-01"}, 400, "last_day"),
        ({"lastDay": "2027-01-01"}, 422, "lastDay"),
        ({"created_by": "eve"}, 201, ""),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    change: dict[str, Any], status: int, field: str
) -> None:
    answer = call(
        secret_of(people.person(role="auditor")), "post", "legalholds/", {**HOLD, **change}
    )
    assert answer.status_code == status
    assert list(answer.json().get("errors", [""])) == [field]
    assert not AuditHold.objects.filter(created_by="eve").exists()
