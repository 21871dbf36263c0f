"""``?at=`` of the API: the policies of an instant, and what is answered where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from policies.history import format_instant
from policies.models import Namespace
from tests import builders, charges, factories, people

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(people.person("ada"))
    return client


def address() -> str:
    return f"/api/v1/namespaces/{Namespace.objects.get(name='team').pk}/effective/"


def test_the_effective_policies_of_an_instant_are_those_of_then(viewer: Client) -> None:
    factories.resource_quota({"pods": "7"})
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    then = viewer.get(address()).json()
    instant = format_instant(timezone.now())
    factories.resource_quota({"pods": "9"})
    charges.admit(builders.request(builders.pod(uid="v"), namespace="team"))
    assert viewer.get(address(), {"at": instant}).json() == then
    assert viewer.get(address()).json()["policies"][0]["used"] == {"pods": "2"}


def test_used_amounts_are_left_out_before_the_journal_begins(viewer: Client) -> None:
    factories.resource_quota({"pods": "7"})
    instant = format_instant(timezone.now())
    [quota] = viewer.get(address(), {"at": instant}).json()["policies"]
    assert quota["used"] == {}
    assert quota["manifest"]["spec"]["hard"] == {"pods": "7"}


@pytest.mark.parametrize(
    ("at", "status", "code"),
    [
        ("soon", 400, "unreadable_instant"),
        ("2999-01-01T00:00Z", 400, "future_instant"),
        ("1999-01-01T00:00Z", 410, "before_horizon"),
    ],
)
def test_an_instant_that_cannot_be_answered_is_a_problem(
    viewer: Client, at: str, status: int, code: str
) -> None:
    factories.namespace()
    answer = viewer.get(address(), {"at": at})
    assert answer.status_code == status
    assert answer.json()["errors"]["at"][0]["code"] == code


def test_a_write_knows_no_instant(viewer: Client) -> None:
    factories.namespace()
    answer = viewer.delete(f"{address().removesuffix('effective/')}?at=2026-01-01T00:00Z")
    assert answer.status_code == 400
    assert answer.json()["errors"]["at"][0]["code"] == "unknown_parameter"
