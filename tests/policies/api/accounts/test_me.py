"""Who one is to the API: the account, its roles as far as the token reaches, the token."""

from __future__ import annotations

import pytest
from django.test import Client

from tests import people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db


def test_roles_end_where_the_token_ends() -> None:
    ada = people.person(role="editor")
    people.bind(ada, "viewer", cluster="test")
    secret = secret_of(ada, "read", cluster="prod", namespace="team-*")
    found = call(secret, "get", "me/").json()
    role = {"role": "editor", "cluster": "prod", "namespace": "team-*"}
    assert (found["user"], found["sees_all"], found["roles"]) == ("ada", False, [role])
    assert (found["token"]["access"], found["token"]["namespace"]) == ("read", "team-*")


def test_a_session_has_no_token() -> None:
    client = Client()
    client.force_login(people.person(role="admin"))
    found = client.get("/api/v1/me/").json()
    assert (found["sees_all"], found["token"]) == (True, None)
    assert client.get("/api/v1/me/?x=1").status_code == 400
    assert Client().get("/api/v1/me/").status_code == 401
