"""The journal of a quota over the API: filters, pages, and who may see it."""

from __future__ import annotations

from typing import Any

import pytest

from policies.ledger.release import release
from policies.models import ResourceQuota
from tests import builders, charges, factories, people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _three_pods(db: None) -> None:
    factories.resource_quota({"pods": "5"})
    for uid in ("u1", "u2", "u3"):
        pod = builders.pod(builders.container(), uid=uid, name=f"web-{uid}", namespace="team")
        assert charges.admit(builders.request(pod, namespace="team", uid=uid)) == [True]
    release("prod", resource="pods", uid="u1", user="eve")


def journal(secret: str, query: str = "", code: int = 200, quota: int = 0) -> Any:
    pk = quota or ResourceQuota.objects.get().pk
    answer = call(secret, "get", f"resourcequotas/{pk}/journal/{query}")
    assert answer.status_code == code, answer.content
    return answer.json()


def lines(secret: str, query: str = "") -> list[tuple[str, str]]:
    return [(each["action"], each["object_uid"]) for each in journal(secret, query)["results"]]


def test_newest_first_in_pages() -> None:
    secret = secret_of(people.person())
    newest = journal(secret, "?limit=2")
    assert newest["count"] == 4
    assert [each["action"] for each in newest["results"]] == ["release", "charge"]
    assert {**newest["results"][0], "id": 0, "created": ""} == {
        "id": 0, "created": "", "action": "release", "resource": "pods", "object_uid": "u1",
        "object_name": "web-u1", "before": {"pods": "1"}, "after": {}, "cause": "person",
        "reference": "eve",
    }  # fmt: skip
    assert lines(secret, "?limit=2&offset=2") == [("charge", "u2"), ("charge", "u1")]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?action=release", 1),
        ("?action__in=release,charge", 4),
        ("?cause=person", 1),
        ("?object_name=web-u1", 2),
        ("?object_uid__in=u1,u2", 3),
        ("?reference=eve", 1),
        ("?resource=services", 0),
        ("?created__lt=2025-01-01T00:00:00Z", 0),
    ],
)
def test_filters(query: str, found: int) -> None:
    assert journal(secret_of(people.person()), query)["count"] == found


def test_what_cannot_be_used_is_refused() -> None:
    secret = secret_of(people.person())
    assert journal(secret, "?action=gone", 400)["errors"]
    assert journal(secret, "?acton=release", 400)["errors"]


def test_who_does_not_see_the_quota_does_not_see_its_journal() -> None:
    elsewhere = secret_of(people.person("bob", namespace="other"))
    journal(elsewhere, code=404)
    journal(secret_of(people.person()), code=404, quota=10**6)
