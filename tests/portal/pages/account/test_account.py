"""The page of one's own account: tokens with a name and a scope, shown once, revoked."""

from __future__ import annotations

from typing import Any

import pytest

from policies.models import ApiToken
from tests import factories, people
from tests.api_tokens import call
from tests.people import signed_in

pytestmark = pytest.mark.django_db
FORM = {"token_name": "ci", "access": "read", "cluster": "", "namespace": "", "days": "7"}


def test_a_token_is_shown_once_and_revoked() -> None:
    factories.cluster()
    client = signed_in(people.person())
    secret = client.post("/account/", FORM).context["secret"]
    page = client.get("/account/").content.decode()
    assert secret not in page
    assert "not yet" in page
    assert call(secret, "get", "clusters/").json()["count"] == 1
    assert "not yet" not in client.get("/account/").content.decode()
    revoke = {"revoke": str(ApiToken.objects.get().public_id)}
    assert signed_in(people.person("bob")).post("/account/", revoke).status_code == 404
    assert client.post("/account/", {"revoke": "x"}).status_code == 404
    assert client.post("/account/", revoke).status_code == 302
    assert call(secret, "get", "clusters/").status_code == 401


def test_a_token_has_the_access_and_the_scope_of_the_form() -> None:
    client = signed_in(people.person())
    scope = {"access": "write", "cluster": "prod", "namespace": "team-*"}
    assert client.post("/account/", {**FORM, **scope}).status_code == 200
    token = ApiToken.objects.get()
    assert (str(token), token.created_by) == ("ci: write in prod, namespace team-*", "ada")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"token_name": ""}, "token_name"),
        ({"access": "all"}, "access"),
        ({"namespace": "A B"}, "namespace"),
        ({"days": "4000"}, "days"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(given: dict[str, Any], field: str) -> None:
    answer = signed_in(people.person()).post("/account/", {**FORM, **given})
    assert (answer.status_code, list(answer.context["token_form"].errors)) == (422, [field])
    assert not ApiToken.objects.exists()


def test_the_page_says_that_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policies.services.tokens.MOST_TOKENS", 1)
    client = signed_in(people.person())
    assert [client.post("/account/", FORM).status_code for _ in "ab"] == [200, 422]
    assert "There are already 1 tokens" in client.post("/account/", FORM).content.decode()
