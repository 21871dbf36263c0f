"""The explanation of a decision over REST: the same as on its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from admission.explain.explanation import explain
from admission.models import AuditEvent
from tests import changes, people
from tests.builders import container, limit_range
from tests.reviews import new_pod, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from policies.models import Cluster

RANGE = limit_range({"type": "Container", "max": {"cpu": "2"}})


@pytest.fixture
def refused(apply: Callable[..., None], ask: Callable[..., Any]) -> AuditEvent:
    """The record of a pod whose limit is above the maximum of its range."""
    apply(RANGE)
    ask(review(new_pod("p", container(limits={"cpu": "4"}))))
    return AuditEvent.objects.get()


def explained(client: Client, event: AuditEvent, user: Any) -> Any:
    client.force_login(user)
    return client.get(f"/api/v1/decisions/{event.pk}/explanation/")


def test_it_says_what_would_pass_and_which_revision_decided(
    client: Client, refused: AuditEvent
) -> None:
    found = explained(client, refused, people.person("reader")).json()
    assert (found["decision"], found["is_of_then"]) == (refused.pk, True)
    assert (found["today"]["allowed"], found["today"]["differs"]) == (False, False)
    assert found["today"]["violations"][0]["reason"] == "MaxConstraint"
    assert [each["name"] for each in found["deciding"]] == ["limits"]
    changes = found["suggestions"][0]["changes"]
    assert "cpu" in changes[0]["field"]
    assert changes[0]["before"] == "4"
    assert found["suggestions"][0]["passes_today"]


def test_it_follows_the_policies_of_now(
    client: Client, refused: AuditEvent, apply: Callable[..., None]
) -> None:
    wide = {**RANGE, "spec": {"limits": [{"type": "Container", "max": {"cpu": "9"}}]}}
    apply(wide)
    found = explained(client, refused, people.person("reader")).json()
    assert (found["today"]["allowed"], found["today"]["differs"]) == (True, True)
    assert [each["name"] for each in found["since"]] == ["limits"]


def test_it_names_the_change_that_wrote_the_bound(
    client: Client, cluster: Cluster, apply: Callable[..., None], refused: AuditEvent
) -> None:
    reader = people.person("reader")
    explanation = explained(client, refused, reader).json()
    assert [each["change"] for each in explanation["deciding"]] == [None]
    narrower = {**RANGE, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
    change = changes.published(changes.change_of(narrower, cluster=cluster.name))
    found = explained(client, refused, reader).json()["since"][0]["change"]
    assert (found["id"], found["author"], found["approvers"]) == (change.pk, changes.AUTHOR, [])


def test_it_is_the_explanation_of_the_page(client: Client, refused: AuditEvent) -> None:
    found = explained(client, refused, people.person("reader")).json()
    same = explain(refused, whole=True)
    assert [each["revision"] for each in found["deciding"]] == [
        each.revision.pk for each in same.deciding
    ]
    assert len(found["suggestions"]) == len(same.ways_out)


def test_hidden_and_unknown_decisions_are_not_found(client: Client, refused: AuditEvent) -> None:
    other = people.person("ed", "editor", cluster="demo", namespace="other")
    assert explained(client, refused, other).status_code == 404
    assert client.get("/api/v1/decisions/0000000000000000/explanation/").status_code == 404
    address = f"/api/v1/decisions/{refused.pk}/explanation/?x=1"
    client.force_login(people.person("reader"))
    assert client.get(address).status_code == 400
