"""Service accounts over the API: kept by admins of the fleet, without a password, with tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.test import RequestFactory

from policies import services
from policies.models import ApiToken, RoleBinding, RoleChange, ServiceAccount
from tests import factories, people
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> str:
    """The token of an admin of the fleet."""
    return secret_of(people.person("admin", "admin"))


def make(admin: str, name: str = "ci", **fields: Any) -> Any:
    return call(admin, "post", "serviceaccounts/", {"name": name, **fields})


def test_an_account_lives_from_creation_to_its_end(admin: str) -> None:
    factories.namespace()
    made = make(admin, description="pipelines")
    assert (made.status_code, made.json()["created_by"]) == (201, "admin")
    assert call(admin, "get", "serviceaccounts/ci/").json() == made.json()
    role = {"user": "ci", "role": "viewer", "cluster": "prod"}
    assert call(admin, "post", "rolebindings/", role).status_code == 201
    token = call(admin, "post", "serviceaccounts/ci/tokens/", {"name": "github", "days": 90})
    assert token.status_code == 201, token.content
    secret = token.json()["secret"]
    assert call(secret, "get", "namespaces/").json()["count"] == 1
    listed = call(admin, "get", "serviceaccounts/ci/tokens/").json()["results"]
    assert [(each["name"], each["secret"]) for each in listed] == [("github", None)]
    changed = call(admin, "patch", "serviceaccounts/ci/", {"description": "none"})
    assert changed.json()["description"] == "none"
    assert call(admin, "delete", "serviceaccounts/ci/?dryRun=All").status_code == 200
    assert call(secret, "get", "namespaces/").status_code == 200
    assert call(admin, "delete", "serviceaccounts/ci/").status_code == 204
    assert call(admin, "get", "serviceaccounts/ci/").status_code == 404
    assert call(secret, "get", "namespaces/").status_code == 401
    assert not RoleBinding.objects.filter(user__username="ci").exists()
    taken = RoleChange.objects.filter(subject="ci", action="taken back", actor="admin")
    assert taken.count() == 1
    assert make(admin).status_code == 409, "the record names it"


def test_a_token_of_an_account_is_revoked(admin: str) -> None:
    make(admin)
    made = call(admin, "post", "serviceaccounts/ci/tokens/", {"name": "x"}).json()
    address = f"serviceaccounts/ci/tokens/{made['id']}/"
    assert call(admin, "get", address).status_code == 200
    assert call(admin, "delete", address).status_code == 204
    assert call(made["secret"], "get", "clusters/").status_code == 401


@pytest.mark.parametrize(
    ("name", "status"),
    [("ci", 201), ("CI", 400), ("a b", 400), ("-x", 400), ("x" * 64, 400), ("admin", 409)],
)
def test_a_name_is_plain_and_new(admin: str, name: str, status: int) -> None:
    refused = make(admin, name)
    assert refused.status_code == status
    assert status == 201 or list(refused.json()["errors"]) == ["name"]


def test_a_name_looks_like_no_other(admin: str) -> None:
    people.nobody("Ada")
    assert make(admin, "ada").status_code == 409


@pytest.mark.parametrize(
    ("role", "place"),
    [("editor", {}), ("approver", {}), ("admin", {"cluster": "prod"}), ("viewer", {})],
)
def test_only_admins_of_the_fleet_keep_accounts(
    admin: str, role: str, place: dict[str, str]
) -> None:
    make(admin)
    user = people.person("other", role, **place)
    people.bind(user, "auditor")
    other = secret_of(user)
    assert make(other, "mine").status_code == 403
    assert call(other, "get", "serviceaccounts/").json()["count"] == 0
    for method, path, body in (
        ("get", "serviceaccounts/ci/", None),
        ("patch", "serviceaccounts/ci/", {"description": "x"}),
        ("delete", "serviceaccounts/ci/", None),
        ("get", "serviceaccounts/ci/tokens/", None),
        ("post", "serviceaccounts/ci/tokens/", {"name": "x"}),
    ):
        assert call(other, method, path, body).status_code == 404, (method, path)
    assert ServiceAccount.objects.count() == 1
    assert not ApiToken.objects.filter(user__username="ci").exists()


def test_a_token_to_read_shows_accounts_and_changes_none(admin: str) -> None:
    make(admin)
    reader = secret_of(get_user_model().objects.get(username="admin"), "read")
    assert call(reader, "get", "serviceaccounts/").json()["count"] == 1
    assert call(reader, "get", "serviceaccounts/ci/tokens/").status_code == 200
    assert call(reader, "post", "serviceaccounts/ci/tokens/", {"name": "x"}).status_code == 403


def test_no_role_makes_tokens_for_a_superuser(admin: str) -> None:
    make(admin)
    get_user_model().objects.filter(username="ci").update(is_superuser=True)
    body = {"name": "x", "access": "write"}
    assert call(admin, "post", "serviceaccounts/ci/tokens/", body).status_code == 403


@pytest.mark.parametrize("password", ["", "a long enough password"])
def test_an_account_signs_in_nowhere(client: Client, password: str) -> None:
    author = people.person("admin", "admin")
    account = services.create_service_account(name="ci", description="", author=author)
    assert not account.user.has_usable_password()
    if password:
        account.user.set_password(password)
        account.user.save()
    given = {"username": "ci", "password": password}
    assert client.post("/accounts/login/", given).status_code == 200
    assert client.get("/account/").status_code == 302
    answer = client.post("/api/v1/token/", given, content_type="application/json")
    assert answer.status_code == 400
    assert authenticate(RequestFactory().get("/"), **given) is None


def test_a_change_of_an_account_names_the_version_that_was_read() -> None:
    admin = secret_of(people.person("root", "admin"))
    made = call(admin, "post", "serviceaccounts/", {"name": "ci"})
    read = call(admin, "get", "serviceaccounts/ci/")
    assert made["ETag"] == read["ETag"]
    changed = call(
        admin, "patch", "serviceaccounts/ci/", {"description": "x"}, if_match=read["ETag"]
    )
    assert changed.status_code == 200
    stale = read["ETag"]
    for method, body in (("patch", {"description": "y"}), ("delete", None)):
        assert call(admin, method, "serviceaccounts/ci/", body, if_match=stale).status_code == 412
    assert call(admin, "delete", "serviceaccounts/ci/", if_match=changed["ETag"]).status_code == 204
