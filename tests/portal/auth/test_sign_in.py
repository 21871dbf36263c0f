"""Sign-in: how many at once, how often and from where; tokens end with their password."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, OperationalError, transaction
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.exceptions import Throttled

from policies import services
from policies.models import ApiToken, RoleBinding, RoleChange, SignInCount
from policies.models import credentials as counts
from portal.auth import sign_in as limits
from portal.auth.callers import address_of, group_of, is_local

if TYPE_CHECKING:
    from django.test import Client

PASSWORD = "a long enough password"
ADDRESSES = ("/accounts/login/", "/admin/login/", "/api/v1/token/")


@pytest.fixture
def ada(db: None) -> Any:
    return get_user_model().objects.create_superuser("ada", password=PASSWORD)


def sign_in(client: Client, where: str, password: str, *, name: str = "ada", **headers: str) -> int:
    given = {"username": name, "password": password}
    if where.startswith("/api/"):
        return client.post(where, given, content_type="application/json", **headers).status_code
    return client.post(where, given, **headers).status_code


def test_hash_costs_what_owasp_advises(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["portal.auth.sign_in.Argon2"]
    encoded = limits.Argon2().encode("x", "a-salt-of-its-own")
    assert "$m=19456,t=2,p=1$" in encoded
    assert limits.Argon2().verify("x", encoded)


@pytest.mark.django_db
def test_hash_of_other_costs_is_renewed_at_sign_in(client: Client, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["portal.auth.sign_in.Argon2"]
    old = Argon2PasswordHasher().encode(PASSWORD, "a-salt-of-its-own")
    user = get_user_model().objects.create(username="ada", password=old)
    ApiToken.objects.create(user=user)
    assert sign_in(client, ADDRESSES[0], PASSWORD) == 302
    user.refresh_from_db()
    assert "$m=19456,t=2,p=1$" in user.password
    assert ApiToken.objects.count() == 1, "the password is the same"


@pytest.mark.parametrize("where", ADDRESSES)
def test_sign_in_without_a_turn_has_to_wait(
    client: Client, ada: Any, monkeypatch: pytest.MonkeyPatch, settings: Any, where: str
) -> None:
    settings.PASSWORD_HASHERS = ["portal.auth.sign_in.Argon2"]
    monkeypatch.setattr(limits, "PATIENCE", 0.01)
    for _ in range(limits.AT_A_TIME):
        limits.turns.acquire()
    try:
        assert sign_in(client, where, PASSWORD) == 429
    finally:
        for _ in range(limits.AT_A_TIME):
            limits.turns.release()
    assert limits.turns.acquire(timeout=0)
    limits.turns.release()


@pytest.mark.parametrize("where", ADDRESSES)
@pytest.mark.parametrize("forged", [False, True], ids=["plain", "another X-Forwarded-For each"])
def test_address_that_fails_too_often_waits_whatever_it_claims(
    client: Client, ada: Any, monkeypatch: pytest.MonkeyPatch, where: str, *, forged: bool
) -> None:
    monkeypatch.setattr(limits, "MOST_BY_ADDRESS", 3)
    answers = []
    for number in range(5):
        headers = {"headers": {"x-forwarded-for": f"10.0.0.{number}"}} if forged else {}
        answers.append(sign_in(client, where, "wrong", name=f"n{number}", **headers))  # type: ignore[arg-type]
    assert 429 not in answers[:3]
    assert answers[3:] == [429, 429]


def test_count_is_one_for_page_admin_and_token(
    client: Client, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_BY_ADDRESS", 3)
    for where in ADDRESSES:
        assert sign_in(client, where, "wrong") != 429
    assert sign_in(client, ADDRESSES[0], PASSWORD) == 429


def test_name_that_others_guess_at_is_still_let_in_from_where_it_was(
    client: Client, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_BY_NAME", 3)
    assert sign_in(client, ADDRESSES[0], PASSWORD, REMOTE_ADDR="192.0.2.1") == 302
    client.logout()
    for number in range(4):
        sign_in(client, ADDRESSES[0], "wrong", REMOTE_ADDR=f"198.51.100.{number}")
    assert sign_in(client, ADDRESSES[0], PASSWORD, REMOTE_ADDR="198.51.100.9") == 429
    assert sign_in(client, ADDRESSES[0], PASSWORD, REMOTE_ADDR="192.0.2.1") == 302


def test_count_starts_again_after_its_window(client: Client, ada: Any) -> None:
    key = "k"
    SignInCount.objects.count_one(key, timedelta(minutes=5))
    SignInCount.objects.update(since=timezone.now() - timedelta(minutes=6))
    assert SignInCount.objects.failures(key, timedelta(minutes=5)) == 0
    SignInCount.objects.count_one(key, timedelta(minutes=5))
    assert SignInCount.objects.failures(key, timedelta(minutes=5)) == 1


@pytest.mark.django_db
def test_counts_are_bounded_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MOST_ROWS", 2)
    for number in range(3):
        SignInCount.objects.count_one(str(number), timedelta(minutes=5))
    assert SignInCount.objects.count() == 2
    SignInCount.objects.update(until=timezone.now() - timedelta(seconds=1))
    SignInCount.objects.forget_old()
    assert SignInCount.objects.count() == 0


def test_new_password_ends_tokens(ada: Any) -> None:
    ApiToken.objects.create(user=ada)
    ada.set_password("another long password")
    ada.save()
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("hops", "written", "expected"),
    [
        (0, "9.9.9.9", "127.0.0.1"),
        (1, "9.9.9.9, 8.8.8.8", "8.8.8.8"),
        (2, "9.9.9.9, 8.8.8.8", "9.9.9.9"),
        (2, "7.7.7.7, 9.9.9.9, 8.8.8.8", "9.9.9.9"),
        (3, "8.8.8.8", "8.8.8.8"),
        (1, "", "127.0.0.1"),
    ],
)
def test_forwarded_address_is_believed_as_far_as_proxies_stand(
    settings: Any, hops: int, written: str, expected: str
) -> None:
    settings.GATEHOUSE_BEHIND_PROXY = hops
    request = RequestFactory().get("/", headers={"x-forwarded-for": written})
    assert address_of(request) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("nobody", "unknown"),
    ],
)
def test_addresses_are_counted_by_network(address: str, expected: str) -> None:
    assert group_of(address) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_local_callers_are_on_this_machine(address: str, *, expected: bool) -> None:
    assert is_local(RequestFactory().get("/", REMOTE_ADDR=address)) is expected


@pytest.mark.django_db
def test_metrics_without_a_token_are_for_local_callers(client: Client) -> None:
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.1").status_code == 401


def test_caller_without_a_request_is_not_throttled() -> None:
    limits.ThrottledBackend().authenticate(None, username="ada")
    assert issubclass(Throttled, Exception)


def test_account_that_is_activated_again_has_to_sign_in_again(client: Client, ada: Any) -> None:
    client.force_login(ada)
    ApiToken.objects.create(user=ada)
    ada.is_active = False
    ada.save()
    ada.is_active = True
    ada.save()
    assert client.get("/account/").status_code == 302
    assert not ApiToken.objects.exists()


@pytest.mark.django_db
def test_anybody_changes_their_own_password(client: Client) -> None:
    user = get_user_model().objects.create_user("bob", password=PASSWORD)
    client.force_login(user)
    ApiToken.objects.create(user=user)
    new = "another long password"
    given = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/account/password/", given).status_code == 302
    user.refresh_from_db()
    assert user.check_password(new)
    assert not ApiToken.objects.exists()
    assert client.get("/account/").status_code == 200, "one's own session goes on"


@pytest.mark.parametrize("model", ["user", "group"])
def test_accounts_are_for_superusers_whatever_rights_others_have(
    client: Client, ada: Any, model: str
) -> None:
    bob = get_user_model().objects.create_user("bob", is_staff=True)
    bob.user_permissions.set(Permission.objects.all())
    RoleBinding.objects.create(user=bob, role="admin", created_by="ada")
    address = f"/admin/auth/{model}/"
    client.force_login(bob)
    assert client.get(address).status_code == 403
    assert client.post(f"{address}add/", {"username": "eve"}).status_code == 403
    client.force_login(ada)
    assert client.get(address).status_code == 200


def test_accounts_are_deactivated_and_never_deleted(client: Client, ada: Any) -> None:
    bob = get_user_model().objects.create_user("bob")
    client.force_login(ada)
    assert client.post(f"/admin/auth/user/{bob.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post("/admin/auth/user/", {"action": "deactivate", "_selected_action": [bob.pk]})
    bob.refresh_from_db()
    assert not bob.is_active


@pytest.mark.parametrize(
    ("address", "sent"),
    [("{}/delete/", {}), ("", {"action": "delete_selected", "_selected_action": "{}"})],
)
def test_deleted_group_leaves_its_roles_in_their_history(
    client: Client, ada: Any, address: str, sent: dict[str, str]
) -> None:
    group = Group.objects.create(name="oncall")
    binding = RoleBinding(group=group, role="editor", cluster="prod")
    services.bind_role(binding=binding, author=ada)
    client.force_login(ada)
    form = {"post": "yes"} | {name: text.format(group.pk) for name, text in sent.items()}
    assert client.post(f"/admin/auth/group/{address.format(group.pk)}", form).status_code == 302
    assert not Group.objects.exists()
    assert not RoleBinding.objects.exists()
    taken, given = RoleChange.objects.all()
    assert (taken.action, taken.subject, taken.actor) == ("taken back", given.subject, "ada")


def test_tokens_made_by_the_api_count_against_the_limit(client: Client, ada: Any) -> None:
    for _ in range(settings.REST_KNOX["TOKEN_LIMIT_PER_USER"]):
        ApiToken.objects.create(user=ada)
    assert sign_in(client, "/api/v1/token/", PASSWORD) == 403


def test_history_of_roles_outlives_the_account(client: Client, ada: Any) -> None:
    bob, eve = (get_user_model().objects.create_user(name) for name in ("bob", "eve"))
    binding = RoleBinding(user=bob, role="editor", cluster="prod", namespace="web")
    services.bind_role(binding=binding, author=eve)
    bob.delete()
    eve.delete()
    client.force_login(ada)
    (row,) = client.get("/api/v1/rolechanges/").json()["results"]
    del row["id"], row["created"]
    assert row == {
        "action": "given",
        "subject": "bob",
        "role": "editor",
        "cluster": "prod",
        "namespace": "web",
        "actor": "eve",
    }


def test_history_of_roles_is_for_those_who_see_the_fleet(client: Client, ada: Any) -> None:
    bob = get_user_model().objects.create_user("bob")
    binding = RoleBinding(user=bob, role="admin", cluster="prod", namespace="web")
    services.bind_role(binding=binding, author=ada)
    client.force_login(bob)
    assert client.get("/api/v1/rolechanges/").json()["results"] == []


@pytest.mark.parametrize("change", ["update", "delete"])
def test_history_of_roles_is_only_added_to(ada: Any, change: str) -> None:
    row = RoleChange.objects.create(action="given", subject="a", role="viewer", actor="b")
    with pytest.raises((IntegrityError, OperationalError)), transaction.atomic():
        RoleChange.objects.filter(pk=row.pk).update(
            actor="c"
        ) if change == "update" else row.delete()
