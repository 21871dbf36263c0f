"""The OpenAPI document describes decisions as the engine's values are recorded and answered."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from engine.decision import Charge, Outcome, Reason, Step, Violation
from engine.patch import PatchOperation
from engine.policy import PolicyRef
from policies import services
from tests import people
from tests.api_document import component
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from policies.models import Cluster

LIST = "/api/v1/decisions/"
FINE = container(
    requests={"cpu": "250m", "memory": "250Mi"}, limits={"cpu": "500m", "memory": "500Mi"}
)
BIG = container(limits={"cpu": "2"})
RULES: dict[str, Any] = {
    "apiVersion": "policy.gatehouse.dev/v1alpha1",
    "kind": "MetadataPolicy",
    "metadata": {"name": "rules", "namespace": "ns"},
    "spec": {"rules": [{"policyAction": {"updatedLabels": {"team": "a"}}}]},
}


@pytest.fixture
def _decided(ask: Callable[..., Any], apply: Callable[..., None]) -> None:
    """Decisions with every verdict, in both phases; unreadable ones."""
    audit = {"policy.gatehouse.dev/enforcement": "audit"}
    metadata = {"name": "watching", "namespace": "watched", "annotations": audit}
    watching = {**SEED_LIMITS, "metadata": metadata}
    apply(SEED_LIMITS, quota(), RULES, watching)
    ask(review(new_pod("mutated")), phase="mutate")
    ask(review(new_pod("charged", FINE)))
    ask(review(new_pod("over", FINE)))
    ask(review(new_pod("big", BIG)))
    watched = new_pod("big", BIG, namespace="watched")
    ask(review(watched, namespace="watched"))
    ask(review(new_pod("free", FINE, namespace="other"), namespace="other"))
    ask(review({"metadata": {"name": 5}, "spec": []}))
    ask({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}})


@pytest.mark.django_db
@pytest.mark.usefixtures("_decided")
def test_every_decision_is_as_described(client: Client) -> None:
    client.force_login(people.person("reader"))
    listed = client.get(LIST).json()["results"]
    assert {one["verdict"] for one in listed} == {"allowed", "mutated", "would-deny", "denied"}
    details = [client.get(f"{LIST}{one['id']}/").json() for one in listed]
    for part in ("violations", "observed", "trace", "patch", "charges", "policies"):
        assert any(detail[part] for detail in details), part


@pytest.mark.django_db
def test_a_decision_that_was_cut_is_as_described(
    client: Client, ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(SEED_LIMITS, RULES)
    many = [container(f"c{n}", requests={"cpu": "9"}) for n in range(1500)]
    ask(review(new_pod("big", *many)), phase="mutate")
    client.force_login(people.person("reader"))
    [listed] = client.get(LIST).json()["results"]
    detail = client.get(f"{LIST}{listed['id']}/").json()
    assert "$cut" in json.dumps(detail["request"])


@pytest.mark.django_db
def test_a_decision_of_a_native_cluster_is_as_described(
    client: Client, cluster: Cluster, ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(SEED_LIMITS)
    services.note_native(cluster=cluster, native=[("LimitRange", "ns", "limits")], user="sync")
    services.set_authority(cluster=cluster, authority="native", user="root")
    ask(review(new_pod("big", BIG)))
    client.force_login(people.person("reader"))
    [listed] = client.get(LIST).json()["results"]
    detail = client.get(f"{LIST}{listed['id']}/").json()
    assert (detail["authority"], bool(detail["observed"])) == ("native", True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Violation", Violation),
        ("Step", Step),
        ("DecisionCharge", Charge),
        ("PolicyRef", PolicyRef),
        ("PatchOperation", PatchOperation),
    ],
)
def test_a_part_of_a_decision_has_the_fields_of_the_value(name: str, value: Any) -> None:
    fields = {field.name for field in dataclasses.fields(value)}
    assert set(component(name)["properties"]) == fields


@pytest.mark.parametrize(("name", "words"), [("ReasonEnum", Reason), ("StepOutcomeEnum", Outcome)])
def test_the_words_are_those_of_the_engine(name: str, words: Any) -> None:
    assert component(name)["enum"] == [word.value for word in words]
