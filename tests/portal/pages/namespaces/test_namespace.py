"""The page of a namespace: what happens to a pod there, whose doing it is, and who may look."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from policies.manifests.bundle import read_bundle
from policies.manifests.import_bundle import Author, ImportOptions, import_bundle
from policies.manifests.sources import read_sources
from portal.dev import demo
from portal.pages.namespaces.try_object import TrialForm, pairs_of
from sync.models import SyncedObject
from tests import factories, people

pytestmark = pytest.mark.django_db
QOS = "metadata.annotations[scheduler.alpha.kubernetes.io/qos]"
HOSTILE = '"><script>alert(1)</script>'


def seeded(name: str) -> None:
    """One of the demo clusters, from its own file."""
    bundle = read_bundle(read_sources([str(demo.HERE / f"{name}.yaml")]))
    author = Author(user="tester", reason="test")
    import_bundle(
        bundle,
        cluster=factories.cluster(name),
        author=author,
        options=ImportOptions(create_namespaces=True),
    )


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def shown(client: Client, place: str, **query: Any) -> Any:
    cluster, _, namespace = place.partition("/")
    address = f"/clusters/{cluster}/namespaces/{namespace}/simulate/"
    response = client.get(f"{address}?{urlencode(query, doseq=True)}")
    assert response.status_code == 200
    return response.context


def causes(context: Any) -> dict[str, str]:
    return {change.field: by.words for change, by in context["changes"]}


def reasons(context: Any) -> list[str]:
    return [each.reason for each in context["refusals"]]


def test_each_change_in_the_demo_names_its_policy(reader: Client) -> None:
    seeded("demo")
    context = shown(reader, "demo/demo", c="app")
    at = "spec.containers[0].resources"
    assert causes(context) == {
        "metadata.annotations[kubernetes.io/limit-ranger]": "LimitRange limits",
        QOS: "Gatehouse, for every pod",
        **dict.fromkeys(
            [
                f"{at}.{side}[{name}]"
                for side in ("limits", "requests")
                for name in ("cpu", "memory")
            ],
            "LimitRange limits",
        ),
    }
    assert context["look"] == "mutated"
    marked = [line.text.strip() for line in context["lines"] if line.by]
    assert len(marked) == 6
    assert sum("250m" in text for text in marked) == 1


def test_scheduler_is_the_doing_of_the_rule_for_its_class(reader: Client) -> None:
    seeded("demo")
    asked = {"c": "app", "labels": "team=a"}
    for amounts, rule in (({}, 2), ({"rc": "1"}, 1), ({"lc": "1", "lm": "1Gi"}, 0)):
        found = causes(shown(reader, "demo/scheduling", **asked, **amounts))
        name = "metadata.annotations[scheduler.alpha.kubernetes.io/name]"
        assert found[name] == f"MetadataPolicy scheduler-by-qos, rule {rule}"
    refused = shown(reader, "demo/scheduling", c="app")
    assert reasons(refused) == ["RejectedByRule"]
    policies: Any = reader.get("/clusters/demo/namespaces/scheduling/policies/")
    told = policies.context["groups"][1].rows[0].says
    assert told[3] == "Rule 3: if label team is missing: refuse"
    assert refused["refusals"][0].by.words.endswith("rule 3")


@pytest.mark.parametrize(
    ("place", "priority", "expected"),
    [
        ("demo/kube-system", "cluster-services", []),
        ("demo/demo", "cluster-services", ["UncoveredScope"]),
        ("demo/demo", "other", []),
        ("demo-priority/kube-system", "cluster-services", []),
        ("demo-priority/kube-system", "other", ["UncoveredScope"]),
        ("demo-priority/covered", "other", []),
    ],
)
def test_both_stories_of_priority(
    reader: Client, place: str, priority: str, expected: list[str]
) -> None:
    seeded(place.partition("/")[0])
    context = shown(reader, place, c="app", lc="500m", lm="300Mi", priority=priority)
    assert reasons(context) == expected
    charged = [cost.quota.name for cost, _ in context["costs"] if cost.is_charged]
    assert bool(charged) is (not expected and place != "demo/demo")


def test_strips_mark_the_binding_and_the_blocked(reader: Client) -> None:
    factories.namespace()
    factories.resource_quota({"pods": "3", "services": "0"}, used={"pods": "1"})
    context = shown(reader, "prod/team", c="app")
    (_, strips) = context["costs"][0]
    assert {strip.line.resource: strip.look for strip in strips} == {
        "pods": "fits",
        "services": "blocked",
    }
    assert context["binding"].resource == "pods"
    line = strips[0].line
    assert (line.used_percent, line.added_percent) == (34, 33)


def pasted(client: Client, text: str) -> Any:
    return client.post("/clusters/prod/namespaces/team/simulate/", {"yaml": text})


def test_pasted_object_is_kept_and_its_violation_has_a_line(reader: Client) -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "1"}})
    text = (
        "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: a\n"
        "    resources:\n      limits:\n        cpu: 2\n"
    )
    response = pasted(reader, text)
    assert response.status_code == 200
    assert response.context["pasted"] == text
    (found,) = response.context["refusals"]
    assert found.reason == "MaxConstraint"
    assert found.line in {5, 7, 8}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("kind: Pod\nspec: [", 2),
        ("kind: Pod\nkind: Pod\n", 2),
        ("", 0),
        ("- a\n", 1),
        ("kind: Pod\n---\nkind: Pod\n", 3),
        ("spec: {}\n", 1),
        ("a: 1\n" * 20_000, 0),
    ],
    ids=["syntax", "twice", "nothing", "list", "two", "kindless", "long"],
)
def test_what_cannot_be_read_is_kept_with_its_line(reader: Client, text: str, line: int) -> None:
    factories.namespace()
    response = pasted(reader, text)
    assert response.status_code == 422
    assert response.context["pasted"] == text
    assert response.context["problems"][0].line == line


def test_any_kind_may_be_tried(reader: Client) -> None:
    factories.namespace()
    factories.resource_quota({"services": "0"})
    response = pasted(reader, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {}\n")
    assert reasons(response.context) == ["ExceededQuota"]


def test_script_gets_the_outcome_alone(reader: Client) -> None:
    factories.namespace()
    address = "/clusters/prod/namespaces/team/simulate/?c=app&rc=lots"
    response = reader.get(address, headers={"HX-Request": "true", "HX-Target": "outcome"})
    assert response.templates[0].name == "namespaces/_outcome.html"
    assert reasons(response.context) == ["UnreadableObject"]


def test_form_gives_its_query_again() -> None:
    query = QueryDict("c=a&c=&c=b&rc=1&rc=2&rc=3&labels=x%3Dy&priority=high")
    draft = TrialForm.of(query)
    assert [row.amounts["rc"] for row in draft.rows] == ["1", "3"]
    assert TrialForm.of(QueryDict(draft.query)) == draft
    assert len(TrialForm.of(QueryDict("c=a&add=1")).rows) == 2
    assert pairs_of("a=b=c\n\n d ") == {"a": "b=c", "d": ""}


def test_hostile_words_are_only_words(reader: Client) -> None:
    factories.namespace()
    asked = {"c": HOSTILE, "priority": HOSTILE, "labels": HOSTILE, "rc": HOSTILE}
    response = reader.get(f"/clusters/prod/namespaces/team/simulate/?{urlencode(asked)}%00")
    assert response.status_code == 200
    assert b"<script>alert" not in response.content
    assert b"<script>alert" not in pasted(reader, f"kind: '{HOSTILE}'\n{HOSTILE}: 1\n").content


def test_drift_is_marked_on_both_sides(reader: Client) -> None:
    quota = factories.resource_quota({"pods": "3"}, name="rq")
    theirs = quota.to_manifest() | {"spec": {"hard": {"pods": "5"}}}
    now = timezone.now()
    SyncedObject.objects.create(
        cluster=factories.cluster(), kind="ResourceQuota", namespace="team", name="rq",
        theirs=theirs, live=theirs, state="drifted", since=now, seen=now,
    )  # fmt: skip
    (both,) = reader.get("/clusters/prod/namespaces/team/live/").context["live"]
    assert both.is_drifted
    assert [text.strip() for text, differs in both.ours if differs] == ['pods: "3"']
    assert [text.strip() for text, differs in both.theirs if differs] == ['pods: "5"']


def test_namespaces_that_may_not_be_seen_are_not_there() -> None:
    factories.namespace("team")
    factories.namespace("other")
    client = Client()
    client.force_login(people.person("bob", namespace="team", cluster="prod"))
    assert client.get("/clusters/prod/namespaces/team/").status_code == 200
    assert client.get("/clusters/prod/namespaces/other/").status_code == 404
    assert pasted(client, "kind: Pod").status_code == 200
    rows = client.get("/clusters/prod/namespaces/").context["lines"]
    assert [line.namespace.name for line in rows] == ["team"]
    assert Client().get("/clusters/prod/namespaces/team/").status_code == 302


@pytest.mark.parametrize("place", ["nowhere/team", "prod/nowhere", "prod/%00"])
def test_unknown_places_are_not_found(reader: Client, place: str) -> None:
    factories.namespace()
    cluster, _, namespace = place.partition("/")
    assert reader.get(f"/clusters/{cluster}/namespaces/{namespace}/").status_code == 404


def test_the_simulator_is_empty_until_it_is_used(reader: Client) -> None:
    factories.resource_quota({"pods": "0"})
    context = shown(reader, "prod/team")
    assert (context["is_asked"], "found" in context) == (False, False)
    assert shown(reader, "prod/team", c="app")["found"].is_admitted is False


def test_the_address_of_old_leads_to_the_simulator(reader: Client) -> None:
    factories.namespace()
    answer = reader.get("/clusters/prod/namespaces/team/?c=app&labels=a")
    assert answer["Location"] == "/clusters/prod/namespaces/team/simulate/?c=app&labels=a"
