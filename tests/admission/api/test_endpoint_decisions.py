"""The record through the API: who may read, what is found, what a page and a detail hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache

from admission.models import AuditEvent
from policies.models import ApiToken
from tests import people
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.test import Client

pytestmark = pytest.mark.django_db
LIST = "/api/v1/decisions/"


@pytest.fixture
def record(ask: Callable[..., Any], apply: Callable[..., None]) -> list[str]:
    """Three decisions: a denial, a mutation, a dry run; their ids, oldest first."""
    apply(SEED_LIMITS, quota())
    big = container(limits={"cpu": "2"})
    ask(review(new_pod("big", big), userInfo={"username": "bob"}))
    ask(review(new_pod("small")), phase="mutate")
    fine = container(
        requests={"cpu": "250m", "memory": "250Mi"}, limits={"cpu": "500m", "memory": "500Mi"}
    )
    ask(review(new_pod("dry", fine), dryRun=True))
    return list(AuditEvent.objects.order_by("created").values_list("id", flat=True))


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    """Somebody signed in, without rights of any kind."""
    client.force_login(people.person("reader"))
    return client


@pytest.mark.parametrize("address", [LIST, f"{LIST}0123456789abcdef/", "/api/schema/"])
def test_strangers_read_nothing(client: Client, address: str) -> None:
    assert client.get(address).status_code == 401


def test_strangers_are_sent_to_sign_in_before_the_swagger_page(client: Client) -> None:
    assert client.get("/api/docs/")["Location"] == "/accounts/login/?next=/api/docs/"


def test_the_list_is_newest_first_and_short(reader: Client, record: list[str]) -> None:
    found = reader.get(LIST).json()["results"]
    assert [entry["id"] for entry in found] == record[::-1]
    assert "request" not in found[0]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("verdict=denied", ["big"]),
        ("verdict=mutated", ["small"]),
        ("name=sm", ["small"]),
        ("user=bob", ["big"]),
        ("dry_run=true", ["dry"]),
        ("dry_run=false", ["small", "big"]),
        ("reason=MaxConstraint", ["big"]),
        ("policy=limits", ["dry", "small", "big"]),
        ("policy=ResourceQuota/ns/pods", ["dry", "small", "big"]),
        ("policy=nothing", []),
        ("cluster=demo&namespace=ns&kind=Pod", ["dry", "small", "big"]),
        ("cluster=other", []),
        ("cluster__in=other,demo&namespace__in=ns,x", ["dry", "small", "big"]),
        ("cluster__in=other", []),
        ("namespace__in=n", []),
        ("kind__in=Deployment,Pod&dry_run=true", ["dry"]),
        ("kind__in=Deployment", []),
        ("verdict__in=denied,mutated", ["small", "big"]),
        ("verdict__in=would-deny,allowed", ["dry"]),
        ("verdict__in=denied&verdict=mutated", []),
        ("phase=mutate", ["small"]),
        ("since=2100-01-01T00:00:00Z", []),
        ("until=2100-01-01T00:00:00Z", ["dry", "small", "big"]),
    ],
)
def test_each_filter_narrows(
    reader: Client, record: list[str], query: str, names: list[str]
) -> None:
    found = reader.get(f"{LIST}?{query}").json()["results"]
    assert [entry["name"] for entry in found] == names


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("verdict=maybe", "invalid_choice"),
        ("verdict__in=denied,maybe", "invalid_choice"),
        ("since=yesterday", "invalid"),
        ("dry_run=perhaps", "invalid_choice"),
        ("cluster__in=", "empty_value"),
        ("kind=", "empty_value"),
        ("kind=Pod&kind=Node", "repeated_parameter"),
        ("name__contains=a", "unknown_parameter"),
        ("user__in=a", "unknown_parameter"),
        ("ordering=created", "unknown_parameter"),
        ("labelSelector=a", "unknown_parameter"),
        ("fields=request", "unknown_field"),
        ("fields=reasons", "unknown_field"),
    ],
)
def test_a_query_that_means_nothing_is_an_error(reader: Client, query: str, code: str) -> None:
    answer = reader.get(f"{LIST}?{query}")
    assert answer.status_code == 400
    [[error]] = answer.json()["errors"].values()
    assert error["code"] == code


def test_the_list_and_the_detail_answer_the_named_members_only(
    reader: Client, record: list[str]
) -> None:
    page = reader.get(f"{LIST}?fields=name,verdict&limit=1").json()
    assert page["results"] == [{"name": "dry", "verdict": "allowed"}]
    assert "fields=name%2Cverdict" in page["next"]
    path = f"{LIST}{record[0]}/"
    detail = reader.get(f"{path}?fields=violations.reason,request.object.metadata.name").json()
    violations = reader.get(path).json()["violations"]
    assert detail == {
        "violations": [{"reason": each["reason"]} for each in violations],
        "request": {"object": {"metadata": {"name": "big"}}},
    }


def test_pages_follow_each_other(reader: Client, record: list[str]) -> None:
    first = reader.get(f"{LIST}?limit=2").json()
    second = reader.get(first["next"]).json()
    assert [e["id"] for e in (*first["results"], *second["results"])] == record[::-1]
    assert second["next"] is None


def test_the_detail_is_complete(reader: Client, record: list[str]) -> None:
    found = reader.get(f"{LIST}{record[0]}/").json()
    assert found["violations"][0]["policy"]["name"] == "limits"
    assert found["request"]["object"]["metadata"]["name"] == "big"
    assert {"trace", "patch", "warnings", "charges", "policies", "groups", "client"} <= set(found)
    assert reader.get(f"{LIST}0000000000000000/").status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nobody_writes_the_record(admin_client: Client, record: list[str], method: str) -> None:
    for address in (LIST, f"{LIST}{record[0]}/"):
        assert getattr(admin_client, method)(address).status_code == 405
    assert AuditEvent.objects.count() == 3


def test_a_token_opens_the_record(
    client: Client, django_user_model: type[User], record: list[str]
) -> None:
    cache.clear()
    django_user_model.objects.create_user("script", password="s3cret-pass")
    given = {"username": "script", "password": "s3cret-pass"}
    issued = client.post("/api/v1/token/", json.dumps(given), content_type="application/json")
    token = issued.json()["token"]
    assert not client.cookies
    headers = {"Authorization": f"Token {token}"}
    assert client.get(LIST, headers=headers).status_code == 200
    assert client.get(LIST, headers={"Authorization": f"Token {token}x"}).status_code == 401


def test_guessing_passwords_gets_slow(client: Client) -> None:
    cache.clear()
    given = json.dumps({"username": "a", "password": "b"})
    answers = [
        client.post("/api/v1/token/", given, content_type="application/json").status_code
        for _ in range(21)
    ]
    assert answers == [400] * 20 + [429]
    cache.clear()


def test_the_schema_describes_the_record(reader: Client) -> None:
    schema = reader.get("/api/schema/?format=json").json()
    assert {LIST, f"{LIST}{{id}}/", "/api/v1/token/"} <= set(schema["paths"])
    names = {p["name"] for p in schema["paths"][LIST]["get"]["parameters"]}
    assert {"cluster", "verdict", "policy", "since", "cursor", "limit"} <= names
    assert not [path for path in schema["paths"] if path.startswith("/admission")]


def test_the_swagger_page_is_our_own(reader: Client) -> None:
    page = reader.get("/api/docs/").content.decode()
    assert "cdn" not in page
    assert "swagger-ui-bundle" in page
    assert "http://" not in page.replace("http://testserver", "")


@pytest.mark.parametrize(
    "address", ["/decisions/export.csv", "/decisions/export.jsonl", "/api/docs/", "/api/schema/"]
)
def test_a_token_opens_what_scripts_fetch(client: Client, record: list[str], address: str) -> None:
    _, token = ApiToken.objects.create(people.person("script"))
    answer = client.get(address, headers={"Authorization": f"Token {token}"})
    assert answer.status_code == 200
    assert b"login" not in b"".join(answer)[:200]
    refused = client.get(address, headers={"Authorization": f"Token {token}x"})
    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Token")


def test_a_token_exports_only_what_its_owner_may_see(client: Client, record: list[str]) -> None:
    _, token = ApiToken.objects.create(people.person("far", cluster="elsewhere"))
    headers = {"Authorization": f"Token {token}"}
    lines = b"".join(client.get("/decisions/export.jsonl", headers=headers)).splitlines()
    assert lines == []


def test_a_token_opens_no_page_that_writes(client: Client) -> None:
    _, token = ApiToken.objects.create(people.person("script"))
    headers = {"Authorization": f"Token {token}"}
    assert client.get("/decisions/", headers=headers).status_code == 302
