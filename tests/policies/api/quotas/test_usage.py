"""Usage of quotas over the API: levels of all that one sees, and the history of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from policies import ledger, snapshot
from policies.models import QuotaUsage, ResourceQuota
from tests import factories, people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db
HARD = {"pods": "10", "requests.cpu": "4"}


def quota(used: dict[str, str], *, namespace: str = "team", cluster: str = "prod") -> ResourceQuota:
    document = factories.manifest("ResourceQuota", {"hard": HARD}, name="rq", namespace=namespace)
    made: ResourceQuota = factories.apply(document, in_cluster=cluster)
    QuotaUsage.objects.filter(quota=made).update(used={**dict.fromkeys(HARD, "0"), **used})
    return made


def listed(secret: str, query: str = "") -> list[Any]:
    answer = call(secret, "get", f"quotausage/{query}")
    assert answer.status_code == 200, answer.content
    found: list[Any] = answer.json()["results"]
    return found


@pytest.fixture
def reader() -> str:
    return secret_of(people.person("reader"), "read")


def test_a_quota_has_the_level_of_its_fullest_resource(reader: str) -> None:
    made = quota({"pods": "5", "requests.cpu": "3500m"})
    assert listed(reader) == [
        {
            "id": made.pk,
            "cluster": "prod",
            "namespace": "team",
            "quota": "rq",
            "resource": "requests.cpu",
            "used": "3500m",
            "hard": "4",
            "percent": 87,
            "level": "near",
        }
    ]


def test_places_and_need_select_them_the_worst_first(reader: str) -> None:
    quota({"pods": "1"}, namespace="calm")
    quota({"pods": "9"}, namespace="near")
    quota({"pods": "12"}, namespace="over")
    quota({"pods": "8"}, namespace="near", cluster="test")
    places = [(each["cluster"], each["namespace"]) for each in listed(reader)]
    assert places == [("prod", "calm"), ("prod", "near"), ("test", "near"), ("prod", "over")]
    assert [each["percent"] for each in listed(reader, "?attention=true")] == [120, 90, 80]
    assert [each["cluster"] for each in listed(reader, "?namespace=near&cluster=test")] == ["test"]
    page = call(reader, "get", "quotausage/?limit=1&offset=3").json()
    assert (page["count"], len(page["results"]), page["next"]) == (4, 1, None)


@pytest.mark.parametrize("query", ["?attention=yes", "?namespaces=x", "?cluster=a&cluster=b"])
def test_what_cannot_be_used_is_refused(reader: str, query: str) -> None:
    assert call(reader, "get", f"quotausage/{query}").status_code == 400


def test_the_history_ends_now_with_the_same_numbers_as_the_page_plots(reader: str) -> None:
    made = quota({"pods": "1"})
    start = datetime.now(UTC) - timedelta(days=2)
    ledger.take_points(start)
    QuotaUsage.objects.filter(quota=made).update(used={"pods": "3", "requests.cpu": "1"})
    ledger.take_points(start + timedelta(hours=2))
    usage = call(reader, "get", f"resourcequotas/{made.pk}/usage/").json()
    assert [(each["resource"], each["percent"]) for each in usage["resources"]] == [
        ("pods", 30),
        ("requests.cpu", 25),
    ]
    points = [(point["used"]["pods"], point["percent"]["pods"]) for point in usage["history"]]
    assert points == [("1", 10), ("3", 30), ("3", 30)]
    recent = call(reader, "get", f"resourcequotas/{made.pk}/usage/?days=1").json()
    assert len(recent["history"]) == 1


def test_what_is_not_counted_yet_is_null_and_never_0(reader: str) -> None:
    made = quota({"requests.cpu": "1"})
    ledger.take_points(datetime.now(UTC) - timedelta(days=2))
    ResourceQuota.objects.update(uncounted=["pods"])
    snapshot.forget()
    unknown = {
        "resource": "pods",
        "used": None,
        "hard": "10",
        "percent": None,
        "level": "unknown",
    }
    usage = call(reader, "get", f"resourcequotas/{made.pk}/usage/").json()
    assert usage["resources"][0] == unknown
    assert usage["resources"][1]["used"] == "1"
    now = usage["history"][-1]
    assert (now["used"], now["percent"]) == ({"requests.cpu": "1"}, {"requests.cpu": 25})
    assert listed(reader)[0].items() >= unknown.items()
    assert listed(reader, "?attention=true") == []
    shown = call(reader, "get", f"resourcequotas/{made.pk}/").json()
    assert shown["status"]["used"] == {"requests.cpu": "1"}


def test_a_point_of_the_history_has_no_amount_that_is_unknown(reader: str) -> None:
    made = quota({"requests.cpu": "1"})
    ResourceQuota.objects.update(uncounted=["pods"])
    ledger.take_points(datetime.now(UTC) - timedelta(hours=2))
    usage = call(reader, "get", f"resourcequotas/{made.pk}/usage/").json()
    assert usage["history"][0]["used"] == {"requests.cpu": "1"}


@pytest.mark.parametrize("days", ["15", "-1", "x", "1.5", "", "٣"])
def test_days_are_a_whole_number_of_those_that_are_kept(reader: str, days: str) -> None:
    made = quota({})
    assert call(reader, "get", f"resourcequotas/{made.pk}/usage/?days={days}").status_code == 400


@pytest.mark.parametrize(
    "scope", [{"cluster": "test"}, {"namespace": "other*"}, {"cluster": "prod", "namespace": "x"}]
)
def test_hidden_quotas_are_not_there(scope: dict[str, str]) -> None:
    made = quota({"pods": "9"})
    for secret in (
        secret_of(people.person("role", **scope)),
        secret_of(people.person("token"), **scope),
    ):
        assert listed(secret) == []
        assert call(secret, "get", f"resourcequotas/{made.pk}/usage/").status_code == 404
        assert call(secret, "get", f"resourcequotas/{made.pk}/consumers/").status_code == 404
