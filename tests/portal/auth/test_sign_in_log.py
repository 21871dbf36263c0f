"""Tries to sign in are noted: of which account, how, from where, with what outcome."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from policies import services
from policies.models import SignIn
from policies.models import credentials as log
from policies.models.edits import AppendOnlyError
from portal.auth.invitations import invite, new_link
from tests import people

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

pytestmark = pytest.mark.django_db
FORM = "/accounts/login/"
API = "/api/v1/token/"
PASSWORD = "right-horse"


@pytest.fixture
def ada() -> User:
    return people.person("ada")


def send(client: Client, address: str, name: str, password: str) -> None:
    given = {"username": name, "password": password}
    kind: dict[str, Any] = {"content_type": "application/json"} if address == API else {}
    client.post(address, given, REMOTE_ADDR="192.0.2.7", **kind)


def noted() -> list[tuple[str, str, str, str]]:
    return [
        (str(each.user or ""), each.way, each.address, each.outcome)
        for each in SignIn.objects.order_by("pk")
    ]


@pytest.mark.parametrize(("address", "way"), [(FORM, "password"), (API, "api")])
def test_success_and_failure_are_noted(client: Client, ada: User, address: str, way: str) -> None:
    send(client, address, "ada", "wrong")
    send(client, address, "ada", PASSWORD)
    assert noted() == [
        ("ada", way, "192.0.2.7", "failed"),
        ("ada", way, "192.0.2.7", "signed-in"),
    ]


def test_name_that_no_account_has_is_not_stored(client: Client, ada: User) -> None:
    send(client, FORM, "my-secret-password", "x")
    send(client, FORM, "a\0da", "x")
    assert {who for who, *_ in noted()} <= {"", str(ada)}
    assert noted()[0] == ("", "password", "192.0.2.7", "failed")


def test_service_account_that_tries_fails(client: Client, ada: User) -> None:
    account = services.create_service_account(name="ci", description="", author=ada)
    account.user.set_password(PASSWORD)
    account.user.save()
    send(client, FORM, "ci", PASSWORD)
    assert noted() == [("ci", "password", "192.0.2.7", "failed")]


def test_link_of_an_invitation_is_a_way_of_its_own(client: Client, ada: User) -> None:
    invited = invite(username="eve", email="eve@example.com", author=ada)
    there = client.get(new_link(invited, author=ada), follow=True)
    chosen = "wrong-mule-paper-clip"
    client.post(there.redirect_chain[-1][0], {"new_password1": chosen, "new_password2": chosen})
    assert noted() == [("eve", "invitation", "127.0.0.1", "signed-in")]


def test_so_many_failures_of_a_day_are_kept(
    client: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MOST_FAILURES", 2)
    yesterday = timezone.now() - timedelta(days=1, minutes=1)
    for user in (ada, None):
        SignIn.objects.create(user=user, way="password", outcome="failed", created=yesterday)
    for name in ("ada", "nobody", "somebody") * 3:
        send(client, FORM, name, "wrong")
    assert SignIn.objects.filter(user=ada).count() == 1 + 2
    assert SignIn.objects.filter(user=None).count() == 1 + 2
    send(client, FORM, "ada", PASSWORD)
    assert SignIn.objects.filter(user=ada, outcome="signed-in").count() == 1


def test_try_is_never_changed(ada: User) -> None:
    one = SignIn.objects.create(user=ada, way="password", outcome="failed")
    one.outcome = "signed-in"
    with pytest.raises(AppendOnlyError):
        one.save()


def test_account_with_tries_is_not_deleted_with_them(ada: User) -> None:
    SignIn.objects.create(user=ada, way="password", outcome="failed")
    with pytest.raises(ProtectedError):
        ada.delete()


@pytest.mark.parametrize(
    "statement",
    ["UPDATE {0} SET way = 'x'", "DELETE FROM {0}", "TRUNCATE {0}", "INSERT OR REPLACE"],
)
def test_tries_are_append_only_in_the_database(ada: User, statement: str) -> None:
    other = {"postgresql": "OR REPLACE", "sqlite": "TRUNCATE"}[connection.vendor]
    if other in statement:
        pytest.skip("of the other database")
    SignIn.objects.create(user=ada, way="password", outcome="failed")
    connection.check_constraints()  # PostgreSQL truncates no table with checks that are deferred
    if statement == "INSERT OR REPLACE":
        statement = "INSERT OR REPLACE INTO {0} SELECT * FROM {0}"
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement.format("policies_signin"))


def test_tries_leave_the_database_when_their_time_is_over_alone(ada: User) -> None:
    for age in (log.KEPT - timedelta(days=2), log.KEPT + timedelta(minutes=1)):
        SignIn.objects.create(
            user=ada, way="password", outcome="failed", created=timezone.now() - age
        )
    SignIn.objects.forget_old()
    assert SignIn.objects.count() == 1
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        SignIn.objects.all().delete()


def test_deactivated_account_keeps_its_tries(client: Client, ada: User) -> None:
    get_user_model().objects.filter(pk=ada.pk).update(is_active=False)
    send(client, FORM, "ada", PASSWORD)
    assert noted() == [("ada", "password", "192.0.2.7", "failed")]
