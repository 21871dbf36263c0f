"""The pages of service accounts: created, given a token, ended, by admins of the fleet alone."""

from __future__ import annotations

import pytest

from policies import services
from policies.models import ApiToken, ServiceAccount
from tests import people
from tests.api_tokens import call
from tests.people import signed_in

pytestmark = pytest.mark.django_db
LIST = "/people/service-accounts/"
PAGE = f"{LIST}ci/"
TOKEN = {"token_name": "github", "access": "write", "cluster": "", "namespace": "", "days": "30"}


def test_an_account_is_created_gets_a_token_and_ends() -> None:
    client = signed_in(people.person(role="admin"))
    made = client.post(LIST, {"name": "ci", "description": "pipelines"})
    assert (made.status_code, made["Location"]) == (302, PAGE)
    assert "pipelines" in client.get(LIST).content.decode()
    secret = client.post(PAGE, TOKEN).context["secret"]
    assert call(secret, "get", "clusters/").status_code == 200
    token = ApiToken.objects.get()
    assert (token.user.username, token.created_by) == ("ci", "ada")
    assert client.post(PAGE, {"revoke": str(token.public_id)}).status_code == 302
    assert call(secret, "get", "clusters/").status_code == 401
    assert client.post(PAGE, {"end": "yes"}).status_code == 302
    assert client.get(PAGE).status_code == 404


@pytest.mark.parametrize("address", [LIST, "/decisions/holds/"])
def test_form_for_a_new_one_stands_in_the_place_of_the_list(address: str) -> None:
    client = signed_in(people.person(role="admin"))
    services.create_service_account(name="ci", description="", author=people.nobody("eve"))
    usual, new = (client.get(f"{address}{query}").content for query in ("", "?new=1"))
    assert b'href="?new=1"' in usual
    assert b"data-save" not in usual
    assert b"data-save" in new
    assert b'href="?"' in new
    wrong = client.post(f"{address}?new=1", {"name": "not a name"})
    assert wrong.status_code in {403, 422}
    assert address != LIST or b"No account was created" in wrong.content


def test_the_page_shows_its_roles_and_leads_to_those_of_people() -> None:
    admin = people.person(role="admin")
    account = services.create_service_account(name="ci", description="", author=admin)
    people.bind(account.user, "editor", cluster="prod", namespace="team-*")
    page = signed_in(admin).get(PAGE).content.decode()
    assert "prod, namespace team-*" in page
    assert "/people/?who=ci" in page


@pytest.mark.parametrize("name", ["", "CI", "ada", "a b"])
def test_what_is_wrong_is_said_at_its_field(name: str) -> None:
    answer = signed_in(people.person(role="admin")).post(LIST, {"name": name})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["name"])
    assert not ServiceAccount.objects.exists()


@pytest.mark.parametrize(
    ("role", "place"),
    [("viewer", {}), ("editor", {}), ("approver", {}), ("admin", {"cluster": "prod"})],
)
def test_pages_are_for_admins_of_the_fleet(role: str, place: dict[str, str]) -> None:
    root = people.person("root", "admin")
    services.create_service_account(name="ci", description="", author=root)
    client = signed_in(people.person(role=role, **place))
    for address in (LIST, PAGE):
        assert client.get(address).status_code == 403
        assert client.post(address, {"name": "x", **TOKEN}).status_code == 403
    assert ServiceAccount.objects.count() == 1
    assert not ApiToken.objects.exists()
    assert LIST not in client.get("/people/").content.decode()
