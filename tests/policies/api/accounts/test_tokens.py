"""One's own tokens over the API, their last use, and what a token may make."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from policies.models import ApiToken
from policies.tokens import authentication
from tests import people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db


def test_a_token_is_created_listed_and_revoked() -> None:
    ada = people.person()
    secret = secret_of(ada)
    body = {"name": "ci", "access": "write", "cluster": "prod", "namespace": "team-*", "days": 7}
    ApiToken.objects.update(expiry=None)
    made = call(secret, "post", "tokens/", body)
    assert made.status_code == 201, made.content
    token = made.json()
    assert {name: token[name] for name in body if name != "days"} == {
        name: body[name] for name in body if name != "days"
    }
    assert token["created_by"] == "ada"
    stored = ApiToken.objects.get(name="ci")
    assert stored.expiry is not None
    assert timedelta(days=6.9) < stored.expiry - timezone.now() < timedelta(days=7)
    listed = {each["name"]: each for each in call(secret, "get", "tokens/").json()["results"]}
    assert listed["ci"] == {**token, "secret": None}
    assert token["secret"] not in str(listed)
    assert call(token["secret"], "get", "tokens/").status_code == 200
    assert call(secret, "delete", f"tokens/{token['id']}/?dryRun=All").json()["name"] == "ci"
    assert call(secret, "delete", f"tokens/{token['id']}/").status_code == 204
    assert call(token["secret"], "get", "tokens/").status_code == 401


def test_a_dry_run_creates_no_token() -> None:
    secret = secret_of(people.person())
    ApiToken.objects.update(expiry=None)
    shown = call(secret, "post", "tokens/?dryRun=All", {"name": "ci"}).json()
    assert (shown["id"], shown["secret"], shown["access"]) == (None, None, "read")
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "name"),
        ({"name": ""}, 400, "name"),
        ({"name": "x", "access": "admin"}, 400, "access"),
        ({"name": "x", "namespace": "a*b"}, 400, "namespace"),
        ({"name": "x", "days": 0}, 400, "days"),
        ({"name": "x", "days": 367}, 400, "days"),
        ({"name": "x", "acces": "read"}, 422, "acces"),
        ({"name": "x", "expiry": None}, 422, "expiry"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(body: dict[str, Any], status: int, field: str) -> None:
    secret = secret_of(people.person())
    refused = call(secret, "post", "tokens/", body)
    assert (refused.status_code, list(refused.json()["errors"])) == (status, [field])


def test_tokens_of_others_are_not_there() -> None:
    secret_of(people.person("bob"))
    secret = secret_of(people.person())
    theirs = ApiToken.objects.get(user__username="bob").public_id
    assert call(secret, "get", "tokens/").json()["count"] == 1
    assert call(secret, "get", f"tokens/{theirs}/").status_code == 404
    assert call(secret, "delete", f"tokens/{theirs}/").status_code == 404


@pytest.mark.parametrize(
    ("own", "asked", "code"),
    [
        ({}, {}, 201),
        ({"cluster": "prod"}, {"cluster": "prod", "namespace": "team"}, 201),
        ({"cluster": "prod"}, {}, 403),
        ({"cluster": "prod"}, {"cluster": "test"}, 403),
        ({"namespace": "team-*"}, {"cluster": "prod", "namespace": "team-a*"}, 201),
        ({"namespace": "team-*"}, {"cluster": "prod", "namespace": "team*"}, 403),
        ({"namespace": "team-*"}, {"cluster": "prod"}, 403),
        ({"namespace": "team"}, {"namespace": "team*"}, 403),
    ],
)
def test_a_token_makes_none_that_is_worth_more(
    own: dict[str, str], asked: dict[str, str], code: int
) -> None:
    secret = secret_of(people.person(role="admin"), **own)
    ApiToken.objects.update(expiry=None)
    body = {"name": "child", "access": "write", **asked}
    assert call(secret, "post", "tokens/", body).status_code == code
    assert ApiToken.objects.filter(name="child").exists() == (code == 201)


def test_a_token_makes_none_that_outlives_it() -> None:
    secret = secret_of(people.person())
    ApiToken.objects.update(expiry=timezone.now() + timedelta(days=2))
    assert call(secret, "post", "tokens/", {"name": "x", "days": 3}).status_code == 403
    assert call(secret, "post", "tokens/", {"name": "x", "days": 1}).status_code == 201


def test_a_scoped_token_shows_no_token_beyond_its_scope() -> None:
    ada = people.person()
    secret = secret_of(ada, cluster="prod")
    secret_of(ada, cluster="secret-cluster")
    shown = call(secret, "get", "tokens/").json()["results"]
    assert [each["cluster"] for each in shown] == ["prod"]


def test_the_limit_of_tokens_is_one_for_api_and_page(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = secret_of(people.person())
    ApiToken.objects.update(expiry=None)
    monkeypatch.setattr("policies.services.tokens.MOST_TOKENS", 2)
    assert [call(secret, "post", "tokens/", {"name": "x"}).status_code for _ in "ab"] == [201, 400]


def test_expired_tokens_are_refused_and_not_listed() -> None:
    ada = people.person()
    old, secret = secret_of(ada), secret_of(ada)
    first = ApiToken.objects.order_by("created").first()
    assert first is not None
    ApiToken.objects.filter(pk=first.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    assert call(old, "get", "tokens/").status_code == 401
    assert call(secret, "get", "tokens/").json()["count"] == 1


def test_a_use_is_noted_once_a_minute() -> None:
    secret = secret_of(people.person(), "read")
    assert ApiToken.objects.get().last_used is None
    assert call(secret, "get", "clusters/").status_code == 200
    first = ApiToken.objects.get().last_used
    assert first is not None
    with CaptureQueriesContext(
        connection,
    ) as queries:
        call(secret, "get", "clusters/")
    assert not [each for each in queries if each["sql"].startswith("UPDATE")]
    assert ApiToken.objects.get().last_used == first
    ApiToken.objects.update(last_used=first - timedelta(minutes=2))
    call(secret, "get", "clusters/")
    noted = ApiToken.objects.get().last_used
    assert noted is not None
    assert noted >= first


def test_a_database_that_takes_no_note_refuses_no_read(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = secret_of(people.person(), "read")

    def busy(*_args: Any, **_names: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(authentication.transaction, "atomic", busy)
    assert call(secret, "get", "clusters/").status_code == 200


def test_a_refused_write_is_no_use() -> None:
    secret = secret_of(people.person(), "read")
    assert call(secret, "post", "tokens/", {"name": "x"}).status_code == 403
    assert ApiToken.objects.get().last_used is None
