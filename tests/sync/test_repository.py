"""A repository of 200 policies over two clusters, edited in pages and in a cluster meanwhile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from policies import services
from policies.models import LimitRange, ResourceQuota
from sync.models import SyncedObject
from sync.passes import resolution
from tests import factories, people
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, own, sync

if TYPE_CHECKING:
    from tests.builders import Manifest

pytestmark = pytest.mark.django_db
POLICIES: Final = 200
ADDRESS: Final = "/api/v1/apply/"


def repository(pods: str = "10") -> list[Manifest]:
    """A quota and a range in each of 100 namespaces."""
    places = [f"team-{number}" for number in range(POLICIES // 2)]
    limits = {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}
    hard = {"hard": {"pods": pods, "requests.cpu": "4"}}
    return [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in places),
        *(factories.manifest("LimitRange", limits, name="lr", namespace=name) for name in places),
        *(factories.manifest("ResourceQuota", hard, name="rq", namespace=name) for name in places),
    ]


def apply(cluster: str, documents: list[Manifest], commit: str, **more: Any) -> dict[str, Any]:
    client = Client()
    client.force_login(pipeline())
    body = {"cluster": cluster, "set": "platform", "documents": documents, "commit": commit}
    answer = client.post(ADDRESS, {**body, **more}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    plan: dict[str, Any] = json.loads(answer.content)
    return plan


def pipeline() -> Any:
    return get_user_model().objects.get(username="ci")


def maximum_of(namespace: str) -> str:
    place = {"namespace__name": namespace, "namespace__cluster__name": "prod"}
    maximum: str = LimitRange.objects.get(**place).to_manifest()["spec"]["limits"][0]["max"]["cpu"]
    return maximum


def hard_of(cluster: str, namespace: str) -> Any:
    place = {"namespace__name": namespace, "namespace__cluster__name": cluster}
    return ResourceQuota.objects.get(**place).to_manifest()["spec"]["hard"]


def edit_in_page(namespace: str, maximum: str) -> None:
    """Save the LimitRange's form, as a person does."""
    client = Client()
    client.force_login(people.person("anna", "editor", cluster="prod"))
    page = f"/clusters/prod/namespaces/{namespace}/limitranges/lr/"
    state = client.get(page).context["state"]
    shown = state.shown
    text = shown.replace('cpu: "2"', f'cpu: "{maximum}"')
    assert text != shown
    given = {"seen": "1", "shown": shown, "yaml": text, "reason": "by hand", "do": "save"}
    assert client.post(page, given).status_code == 302


def conflicts(plan: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    return {
        (each["kind"], each["namespace"], one["field"], one["manager"])
        for each in plan["objects"]
        for one in each["conflicts"]
    }


def next_commit() -> list[Manifest]:
    """Another value for every policy."""
    changed = repository(pods="12")
    for manifest in changed:
        if manifest["kind"] == "LimitRange":
            manifest["spec"]["limits"][0]["max"]["cpu"] = "4"
    return changed


def edit_in_cluster(prod: Memory) -> None:
    edited = {"hard": {"pods": "15", "requests.cpu": "4"}}
    prod.put(factories.manifest("ResourceQuota", edited, name="rq", namespace="team-7"))
    sync(prod, connected("prod"))


@pytest.fixture
def clusters() -> dict[str, Memory]:
    """Two clusters that the portal owns, with everything of the first commit in them."""
    people.person("ci", "admin")
    made = {name: Memory(*(f"team-{n}" for n in range(100))) for name in ("prod", "stage")}
    for name, memory in made.items():
        sync(memory, connected(name))
        own(factories.cluster(name))
        first = apply(name, repository(), "aaa1111")
        assert (first["applied"], first["counts"]["create"]) == (True, POLICIES)
        sync(memory, connected(name))
        assert memory.spec("ResourceQuota", "rq", "team-7")["hard"]["pods"] == "10"
        assert apply(name, repository(), "aaa1111")["counts"]["unchanged"] == POLICIES + 100
    return made


def test_each_conflict_is_shown_and_nothing_is_lost(clusters: dict[str, Memory]) -> None:
    edit_in_page("team-3", "3")
    edit_in_cluster(clusters["prod"])
    blocked = apply("prod", next_commit(), "bbb2222")
    assert not blocked["applied"]
    assert conflicts(blocked) == {("LimitRange", "team-3", "spec.limits", "ui:anna")}
    assert hard_of("prod", "team-8")["pods"] == "10", "whole or not at all"
    assert maximum_of("team-3") == "3"
    # The other cluster is a plan of its own.
    assert apply("stage", next_commit(), "bbb2222")["counts"]["change"] == POLICIES

    forced = apply("prod", next_commit(), "bbb2222", force=True)
    assert (forced["applied"], forced["counts"]["change"]) == (True, POLICIES)
    sync(clusters["prod"], connected("prod"))
    edited = SyncedObject.objects.get(
        cluster__name="prod", kind="ResourceQuota", namespace="team-7"
    )
    assert edited.state == "conflict", "both sides changed the same field"
    assert clusters["prod"].spec("ResourceQuota", "rq", "team-7")["hard"]["pods"] == "15"
    assert clusters["prod"].spec("ResourceQuota", "rq", "team-8")["hard"]["pods"] == "12"
    assert hard_of("prod", "team-7")["pods"] == "12"


@pytest.mark.long  # as much again, for one more way of the edit
def test_an_edit_of_the_cluster_that_a_person_takes_over_conflicts_by_their_name(
    clusters: dict[str, Memory],
) -> None:
    edit_in_cluster(clusters["prod"])
    drifted = SyncedObject.objects.get(
        cluster__name="prod", kind="ResourceQuota", namespace="team-7"
    )
    assert drifted.state == "drifted"
    resolution.resolve(drifted, choices="theirs", revision=1, user="anna")
    blocked = apply("prod", next_commit(), "bbb2222")
    assert conflicts(blocked) == {("ResourceQuota", "team-7", "spec.hard[pods]", "ui:anna")}
    forced = apply("prod", next_commit(), "bbb2222", force=True)
    assert forced["applied"]
    assert apply("prod", next_commit(), "bbb2222")["counts"]["unchanged"] == POLICIES + 100
    sync(clusters["prod"], connected("prod"))
    assert clusters["prod"].spec("ResourceQuota", "rq", "team-7")["hard"]["pods"] == "12"
    key = ("ResourceQuota", "team-7", "rq")
    row = services.managers_of(factories.cluster("prod"), [key])[key]
    assert (row.set, row.fields["spec.hard[pods]"]["commit"]) == ("platform", "bbb2222")
