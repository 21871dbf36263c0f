"""The panel beside the log: its words and bars, who may open it, and what it asks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission.models import AuditEvent, Verdict, decision_id
from tests import people
from tests.admission.requested import requested

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
QUOTA = {"kind": "ResourceQuota", "namespace": "team", "name": "compute", "revision": 1}
LIMITS = {"kind": "LimitRange", "namespace": "team", "name": "limits", "revision": 1}


def exceeded(resource: str, used: str, requested: str, hard: str) -> dict[str, Any]:
    numbers = {"resource": resource, "used": used, "requested": requested, "hard": hard}
    return {
        "reason": "ExceededQuota", "field": "spec", "message": "exceeded quota: compute, ...",
        "policy": QUOTA, "rule": None, "numbers": numbers,
    }  # fmt: skip


def above(message: str = "maximum cpu is 1, but limit is 2") -> dict[str, Any]:
    return {
        "reason": "MaxConstraint", "field": "spec", "message": message,
        "policy": LIMITS, "rule": 0, "numbers": {},
    }  # fmt: skip


def put(**fields: Any) -> AuditEvent:
    made = AuditEvent(
        **{
            "id": decision_id.encode(int(datetime.now(UTC).timestamp() * 1000) - 1000, 1),
            "duration_us": 1500,
            "cluster": "prod",
            "phase": "validate",
            "operation": "CREATE",
            "kind": "Pod",
            "namespace": "team",
            "name": "web-5d9f8c7b6d-x2x4z",
            "user": "system:serviceaccount:kube-system:replicaset-controller",
            "verdict": Verdict.ALLOWED,
            "code": 200,
            **fields,
        }
    )
    made.save()
    return made


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def address(event: AuditEvent) -> str:
    return f"/decisions/{event.pk}/panel"


@pytest.mark.parametrize(
    ("kind", "owner", "name", "shown"),
    [
        ("Job", "nightly-etl-rqqhggrmm", "nightly-etl-rqqhggrmm-x2x4z", "nightly-etl"),
        ("Cluster", "pg", "pg-main-1", "pg"),
        ("", "", "web-5d9f8c7b6d-x2x4z", "web"),
    ],
)
def test_a_refusal_has_one_name_in_its_row_its_panel_and_its_page(
    reader: Client, kind: str, owner: str, name: str, shown: str
) -> None:
    references = [{"kind": kind, "name": owner, "controller": True}] if kind else []
    event = put(
        name=name,
        verdict=Verdict.DENIED,
        code=403,
        **requested({"object": {"metadata": {"name": name, "ownerReferences": references}}}),
    )
    row = reader.get("/decisions/?verdict=denied").context["log"][0]
    panel = reader.get(address(event), headers=HTMX).context["name"]
    page = reader.get(f"/decisions/{event.pk}").context["name"]
    assert (row.name, panel, page) == (shown, shown, shown)


def test_scripts_get_a_part_and_people_the_page(reader: Client) -> None:
    event = put()
    part = reader.get(address(event), headers=HTMX)
    assert part.status_code == 200
    assert b"<html" not in part.content
    assert "no-store" in part["Cache-Control"]
    page = reader.get(address(event))
    assert (page.status_code, page["Location"]) == (302, f"/decisions/{event.pk}")


def test_what_is_hidden_is_not_found(client: Client) -> None:
    event = put()
    assert client.get(address(event), headers=HTMX).status_code == 302
    client.force_login(people.person(cluster="prod", namespace="other"))
    assert client.get(address(event), headers=HTMX).status_code == 404


def test_a_denial_in_short(reader: Client) -> None:
    found = [exceeded("pods", "7", "2", "8"), above(), above("two"), above("three")]
    event = put(verdict=Verdict.DENIED, code=403, violations=found, more_violations=2)
    context = reader.get(address(event), headers=HTMX).context
    assert (context["name"], context["account"]) == ("web", "replicaset-controller")
    assert [fault.amount is not None for fault in context["faults"]] == [True, False, False]
    assert context["more_faults"] == 3


def test_a_mutation_in_short(reader: Client) -> None:
    patch = [{"op": "add", "path": f"/metadata/labels/l{n}", "value": "x"} for n in range(10)]
    event = put(verdict=Verdict.MUTATED, patch=patch, phase="mutate")
    context = reader.get(address(event), headers=HTMX).context
    assert len(context["changes"]) + context["more_changes"] == 10
    assert context["faults"] == []


def test_a_panel_asks_as_much_for_any_number_of_violations(reader: Client) -> None:
    asked = []
    for number in (1, 40):
        event = put(
            id=decision_id.encode(int(datetime.now(UTC).timestamp() * 1000) - 1000, number),
            verdict=Verdict.DENIED,
            code=403,
            violations=[above(str(each)) for each in range(number)],
        )
        reader.get(address(event), headers=HTMX)
        with CaptureQueriesContext(connection) as queries:
            reader.get(address(event), headers=HTMX)
        asked.append(len(queries))
    assert asked[0] == asked[1]
