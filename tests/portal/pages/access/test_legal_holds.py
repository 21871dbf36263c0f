"""Legal holds: an auditor holds and releases in the own place, without the staff flag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditHold
from tests import people
from tests.people import signed_in

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


def hold(client: Client, cluster: str = "prod", namespace: str = "team", **more: str) -> Any:
    given = {"first_day": "2026-01-01", "reason": "case 7", **more}
    return client.post("/decisions/holds/", {"cluster": cluster, "namespace": namespace, **given})


def test_an_auditor_holds_and_releases_in_the_own_namespace() -> None:
    client = signed_in(people.person(role="auditor", cluster="prod", namespace="team"))
    assert hold(client).status_code == 302
    made = AuditHold.objects.get()
    assert (made.cluster, made.namespace, made.created_by) == ("prod", "team", "ada")
    (shown,) = client.get("/decisions/holds/").context["holds"]
    assert shown == {"hold": made, "may_release": True}
    assert client.post("/decisions/holds/", {"release": made.pk}).status_code == 302
    made.refresh_from_db()
    assert made.released
    assert made.released_by == "ada"


@pytest.mark.parametrize(
    ("cluster", "namespace"), [("prod", "other"), ("prod", ""), ("test", "team"), ("", "team")]
)
def test_nobody_holds_beside_the_own_place(cluster: str, namespace: str) -> None:
    client = signed_in(people.person(role="auditor", cluster="prod", namespace="team"))
    assert hold(client, cluster, namespace).status_code == 403
    assert not AuditHold.objects.exists()


@pytest.mark.parametrize("namespace", ["other", ""])
def test_holds_of_other_places_are_neither_shown_nor_released(namespace: str) -> None:
    other = AuditHold.objects.create(
        cluster="prod", namespace=namespace, first_day="2026-01-01", reason="theirs"
    )
    client = signed_in(people.person(role="auditor", cluster="prod", namespace="team"))
    assert client.get("/decisions/holds/").context["holds"] == []
    assert client.post("/decisions/holds/", {"release": other.pk}).status_code == 404
    assert AuditHold.objects.in_force().exists()


@pytest.mark.parametrize("role", ["viewer", "editor", "approver"])
def test_only_auditors_and_admins_come_in(role: str) -> None:
    client = signed_in(people.person(role=role))
    assert client.get("/decisions/holds/").status_code == 403
    assert hold(client).status_code == 403
    assert signed_in(people.person("root", "admin")).get("/decisions/holds/").status_code == 200


@pytest.mark.parametrize(
    ("given", "field"),
    [({"last_day": "2025-12-31"}, "last_day"), ({"reason": ""}, "reason")],
)
def test_what_is_wrong_is_said_at_its_field(given: dict[str, str], field: str) -> None:
    answer = hold(signed_in(people.person(role="auditor")), **given)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])
