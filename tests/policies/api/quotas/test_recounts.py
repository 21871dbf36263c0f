"""Recounts over the API: differences are named, and repaired by who may change quotas there."""

from __future__ import annotations

from typing import Any

import pytest

from policies.models import LedgerEntry, QuotaUsage
from tests import builders, charges, factories, people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db
PLACE = {"cluster": "prod", "namespace": "team"}
DIFFERENCE = {
    "namespace": "team", "quota": "rq", "resource": "pods", "used": "4", "charged": "1",
}  # fmt: skip

EXPLAINED = ("charge", "u1", "admission")


@pytest.fixture(autouse=True)
def _drifted(db: None) -> None:
    """One pod is charged, and the quota says four."""
    factories.resource_quota({"pods": "5"})
    pod = builders.pod(builders.container(), uid="u1", namespace="team")
    assert charges.admit(builders.request(pod, namespace="team")) == [True]
    QuotaUsage.objects.update(used={"pods": "4"})


def used() -> str:
    found: str = QuotaUsage.objects.get().used["pods"]
    return found


def recounted(secret: str, body: dict[str, Any], query: str = "") -> Any:
    answer = call(secret, "post", f"recounts/{query}", body)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    for difference in found["differences"]:
        [entry] = difference.pop("entries")
        assert (entry["action"], entry["object_uid"], entry["cause"]) == EXPLAINED
        assert not difference.pop("is_explained")
    return found


def test_a_difference_is_named_and_repaired_only_if_asked() -> None:
    secret = secret_of(people.person(role="editor"))
    named = {"cluster": "prod", "differences": [DIFFERENCE], "repaired": False}
    assert recounted(secret, PLACE) == named
    assert recounted(secret, {"cluster": "prod"}) == named
    assert recounted(secret, {**PLACE, "repair": True}, "?dryRun=All") == named
    assert used() == "4"
    assert recounted(secret, {**PLACE, "repair": True}) == {**named, "repaired": True}
    assert used() == "1"
    assert recounted(secret, PLACE)["differences"] == []
    repair = LedgerEntry.objects.get(action="recount")
    assert (repair.reference, repair.before, repair.after) == ("ada", {"pods": "4"}, {"pods": "1"})


@pytest.mark.parametrize(
    ("role", "scope", "body", "code"),
    [
        ("editor", {"namespace": "te*"}, PLACE, 200),
        ("editor", {"namespace": "te*"}, {"cluster": "prod"}, 403),
        ("editor", {"cluster": "prod"}, {"cluster": "prod"}, 200),
        ("viewer", {}, PLACE, 403),
        ("approver", {}, PLACE, 403),
        ("editor", {"cluster": "test"}, PLACE, 400),
        ("editor", {"cluster": "prod", "namespace": "x"}, PLACE, 422),
    ],
)
def test_who_may_recount_where(
    role: str, scope: dict[str, str], body: dict[str, str], code: int
) -> None:
    secret = secret_of(people.person(role=role, **scope))
    assert call(secret, "post", "recounts/", {**body, "repair": True}).status_code == code
    assert used() == ("1" if code == 200 else "4")


def test_a_scoped_token_recounts_in_its_scope_only() -> None:
    editor = people.person(role="editor")
    narrow = secret_of(editor, cluster="prod", namespace="team")
    assert call(narrow, "post", "recounts/", {"cluster": "prod"}).status_code == 403
    assert recounted(narrow, PLACE)["differences"] == [DIFFERENCE]
    assert call(secret_of(editor, "read"), "post", "recounts/", PLACE).status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "cluster"),
        ({"cluster": "nowhere"}, 400, "cluster"),
        ({"cluster": "prod", "namespace": "tem"}, 422, "namespace"),
        ({"cluster": "prod", "repare": True}, 422, "repare"),
        ({"cluster": "prod", "repair": "perhaps"}, 422, "repair"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(body: Any, status: int, field: str) -> None:
    refused = call(secret_of(people.person(role="admin")), "post", "recounts/", body)
    assert (refused.status_code, list(refused.json()["errors"])) == (status, [field])
