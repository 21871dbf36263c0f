"""The list of policies: its tabs, facets, order and pages, and where a new policy begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from admission.models import AuditEvent, decision_id, partitions
from policies.models import ResourceQuota
from portal.pages.lists import USUAL_ROWS
from sync.models import ClusterConnection, SyncedObject
from tests import factories, people

if TYPE_CHECKING:
    from pytest_django import DjangoAssertMaxNumQueries

pytestmark = pytest.mark.django_db
POD = {"type": "Container", "max": {"cpu": "2"}}
RULE = {"PolicyAction": {"updatedLabels": {"a": "b"}}}
AUDIT = {"policy.gatehouse.dev/enforcement": "audit"}
HARD = {"pods": "3"}


def quota(
    name: str = "rq", *, namespace: str = "team", cluster: str = "prod", **metadata: Any
) -> Any:
    spec = {"hard": HARD}
    document = factories.manifest("ResourceQuota", spec, name=name, namespace=namespace, **metadata)
    return factories.apply(document, in_cluster=cluster)


@pytest.fixture
def fleet() -> None:
    """Two clusters, four policies of three kinds, one of them in audit mode, a priority class."""
    factories.limit_range(POD)
    factories.metadata_policy(RULE, annotations=AUDIT)
    quota()
    quota("big", namespace="other", cluster="edge")
    factories.priority_class()


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(people.person())
    return client


def listed(client: Client, query: str = "") -> Any:
    response: Any = client.get(f"/policies/{query}")
    assert response.status_code == 200
    return response.context


def names(context: Any) -> list[str]:
    return [line["name"] for line in context["lines"]]


def chosen(choices: Any) -> dict[str, int]:
    return {choice.label: choice.number for choice in choices}


def facet(context: Any, wanted: str) -> dict[str, int]:
    facets = [each for each in context["facets"] if each.name == wanted]
    return {name: number for each in facets for name, number in chosen(every(each)).items()}


def every(facet: Any) -> list[Any]:
    return [*facet.choices, *facet.more]


def decided(number: int, kind: str, name: str, *, is_observed: bool = False) -> None:
    moment = datetime.now(UTC) - timedelta(minutes=5)
    partitions.ensure(moment)
    violation = {"policy": {"kind": kind, "namespace": "team", "name": name}}
    made: dict[str, Any] = {"cluster": "prod", "namespace": "team", "kind": "Pod", "reasons": " A "}
    made |= {"verdict": "denied", "code": 403, "duration_us": 1, "phase": "validate"}
    made |= {"verdict": "allowed", "observed": [violation]} if is_observed else {}
    made |= {} if is_observed else {"violations": [violation]}
    AuditEvent(id=decision_id.encode(int(moment.timestamp() * 1000), number), **made).save()


@pytest.mark.usefixtures("fleet")
def test_tabs_and_facets_count_what_choosing_them_would_show(reader: Client) -> None:
    everything = listed(reader)
    assert chosen(everything["tabs"]) == {
        "All": 4, "LimitRanges": 1, "MetadataPolicies": 1, "ResourceQuotas": 2,
        "PriorityClasses": 1,
    }  # fmt: skip
    assert facet(everything, "mode") == {"enforce": 3, "warn": 0, "audit": 1}
    assert facet(everything, "cluster") == {"edge": 1, "prod": 3}
    assert facet(everything, "namespace") == {"other": 1, "team": 3}
    assert facet(everything, "sync") == {"portal-only": 4}
    assert everything["total"] == len(everything["lines"]) == 4
    for each in everything["facets"]:
        for choice in every(each):
            assert listed(reader, f"?{choice.query}")["total"] == choice.number
    for tab in everything["tabs"]:
        assert listed(reader, f"?{tab.query}")["total"] == tab.number


@pytest.mark.usefixtures("fleet")
def test_a_choice_keeps_the_others_and_can_be_taken_back(reader: Client) -> None:
    narrowed = listed(reader, "?cluster=prod&kind=ResourceQuota&mode=enforce")
    assert names(narrowed) == ["rq"]
    assert facet(narrowed, "cluster") == {"edge": 1, "prod": 1}
    modes = narrowed["facets"][0]
    taken_back = next(choice for choice in modes.choices if choice.is_chosen)
    assert "mode" not in taken_back.query
    assert {"cluster=prod", "kind=ResourceQuota"} <= set(taken_back.query.split("&"))


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?words=bi", ["big"]),
        ("?words=OTHER", ["big"]),
        ("?words=team+rq", ["rq"]),
        ("?namespace=other", ["big"]),
        ("?namespace=oth", []),
        ("?mode=audit", ["mp"]),
        ("?cluster=nowhere", []),
        ("?kind=PriorityClass", ["high"]),
        ("?kind=PriorityClass&namespace=team", []),
        ("?kind=nothing&words=rq", ["rq"]),
        ("?words=%00rq&page=99&order=nothing", ["rq"]),
    ],
)
def test_filters_find(reader: Client, query: str, found: list[str]) -> None:
    context = listed(reader, query)
    assert (names(context), context["total"]) == (found, len(found))


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("", ["mp", "lr", "big", "rq"]),
        ("denials", ["mp", "lr", "big", "rq"]),
        ("name", ["big", "lr", "mp", "rq"]),
        ("-name", ["rq", "mp", "lr", "big"]),
        ("namespace", ["big", "lr", "mp", "rq"]),
        ("cluster", ["big", "lr", "mp", "rq"]),
        ("mode", ["mp", "big", "lr", "rq"]),
        ("changed", ["lr", "mp", "rq", "big"]),
        ("-changed", ["big", "rq", "mp", "lr"]),
    ],
)
def test_orders(reader: Client, order: str, found: list[str]) -> None:
    for number in range(2):
        decided(number, "MetadataPolicy", "mp", is_observed=True)
    decided(9, "LimitRange", "lr")
    assert names(listed(reader, f"?order={order}")) == found


@pytest.mark.usefixtures("fleet")
def test_denials_are_those_of_the_policy_and_not_of_its_namespace(reader: Client) -> None:
    decided(1, "LimitRange", "lr")
    decided(2, "MetadataPolicy", "mp", is_observed=True)
    context = listed(reader)
    numbers = {
        line["name"]: (line["hits"].denied, line["hits"].would_deny) for line in context["lines"]
    }
    assert numbers == {"lr": (1, 0), "mp": (0, 1), "big": (0, 0), "rq": (0, 0)}
    links = {line["name"]: line["decisions"] for line in context["lines"]}
    page: Any = reader.get("/decisions/", {**links["lr"], "verdict": "denied"})
    assert (page.status_code, b"verdict=denied" in reader.get("/policies/").content) == (200, True)


@pytest.mark.usefixtures("fleet")
def test_denials_that_may_not_be_seen_do_not_count() -> None:
    decided(1, "LimitRange", "lr")
    client = Client()
    client.force_login(people.person("bob", cluster="edge", namespace="other"))
    context = listed(client)
    assert names(context) == ["big"]
    assert context["hits"].by_policy == {}
    assert facet(context, "cluster") == {}
    assert chosen(context["tabs"])["All"] == 1


@pytest.mark.usefixtures("fleet")
def test_a_line_says_who_changed_it_last_and_whether_the_cluster_has_it(reader: Client) -> None:
    cluster = ResourceQuota.objects.get(name="rq").namespace.cluster
    now = timezone.now()
    place = {"cluster": cluster, "namespace": "team", "since": now, "seen": now}
    SyncedObject.objects.create(kind="ResourceQuota", name="rq", state="drifted", **place)
    SyncedObject.objects.create(kind="LimitRange", name="lr", state="pending", **place)
    states = {line["name"]: (line["user"], line["sync"]) for line in listed(reader)["lines"]}
    assert states == {
        "rq": ("tester", "drifted"),
        "lr": ("tester", "writing"),
        "mp": ("tester", "portal-only"),
        "big": ("tester", "portal-only"),
    }
    ClusterConnection.objects.create(
        cluster=cluster, server="https://c.example", method="token", sealed=b"", is_paused=True
    )
    assert {line["name"]: line["sync"] for line in listed(reader)["lines"]}["lr"] == "paused"
    for state, names_of_state in {
        "drifted": ["rq"], "paused": ["lr"], "writing": [], "portal-only": ["big", "mp"],
    }.items():  # fmt: skip
        assert names(listed(reader, f"?sync={state}&order=name")) == names_of_state
    assert facet(listed(reader), "sync") == {"drifted": 1, "paused": 1, "portal-only": 2}
    assert facet(listed(reader, "?kind=LimitRange"), "sync") == {"paused": 1}


def test_many_namespaces_are_chosen_from_with_the_largest_first(reader: Client) -> None:
    for number in range(7):
        quota(namespace=f"n-{number}")
    quota("second", namespace="n-5")
    (shown,) = [each for each in listed(reader)["facets"] if each.name == "namespace"]
    assert [choice.label for choice in shown.choices] == ["n-5", "n-0", "n-1", "n-2", "n-3"]
    assert [choice.label for choice in shown.more] == ["n-4", "n-6"]
    (narrowed,) = [
        each for each in listed(reader, "?namespace=n-6")["facets"] if each.name == "namespace"
    ]
    assert narrowed.choices[0].label == "n-6"


def test_the_button_of_filters_counts_facets_also_without_a_match(reader: Client) -> None:
    assert listed(reader, "?kind=LimitRange&words=x&order=name")["filters_chosen"] == 0
    query = "?cluster=prod&namespace=nowhere&label=a=b&user=ada&mode=warn&sync=drifted"
    assert listed(reader, query)["filters_chosen"] == 6


@pytest.mark.usefixtures("fleet")
def test_who_changed_them_and_their_labels_are_facets(reader: Client) -> None:
    quota("mine", labels={"team": "a", "tier": "1"})
    quota("other", labels={"team": "b"}, namespace="other", cluster="edge")
    everything = listed(reader)
    assert facet(everything, "user") == {"tester": 6}
    assert facet(everything, "label") == {"team=a": 1, "team=b": 1, "tier=1": 1}
    assert [each.is_closed for each in everything["facets"]][-2:] == [True, True]
    chosen_label = listed(reader, "?label=team%3Da")
    assert names(chosen_label) == ["mine"]
    assert facet(chosen_label, "label") == {"team=a": 1, "team=b": 1, "tier=1": 1}
    assert facet(chosen_label, "user") == {"tester": 1}
    assert facet(chosen_label, "cluster") == {"prod": 1}
    assert not chosen_label["facets"][-1].is_closed
    assert names(listed(reader, "?user=tester&cluster=edge")) == ["big", "other"]
    assert listed(reader, "?user=nobody")["total"] == 0
    assert listed(reader, "?user=tester&kind=PriorityClass")["total"] == 0


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("group", ["namespace", "kind", "cluster"])
@pytest.mark.parametrize("order", ["", "name", "-name"])
def test_groups_stand_together_with_their_numbers(reader: Client, group: str, order: str) -> None:
    decided(1, "ResourceQuota", "rq")
    context = listed(reader, f"?group={group}&order={order}")
    groups = [line["group"] for line in context["lines"]]
    assert groups == sorted(groups)
    assert {line["group"]: line["group_number"] for line in context["lines"]} == {
        name: groups.count(name) for name in groups
    }
    if not order:
        of_rq = next(line["group"] for line in context["lines"] if line["name"] == "rq")
        assert next(line["name"] for line in context["lines"] if line["group"] == of_rq) == "rq"


@pytest.mark.usefixtures("fleet")
def test_columns_are_chosen_in_the_address(reader: Client) -> None:
    factories.limit_range(POD, name="labelled", labels={"team": "a"})
    page = reader.get("/policies/?columns=mode+labels").content.decode()
    assert "team=a" in page
    assert "aria-sort" not in page  # the denials that sort it are not shown
    assert 'class="col-cluster' not in page
    assert 'name="columns" value="mode labels"' in page


def test_hits_are_drawn_by_the_hour(reader: Client) -> None:
    factories.limit_range(POD)
    decided(1, "LimitRange", "lr")
    (line,) = listed(reader)["lines"]
    assert line["hits"].parts == [0] * 23 + [1]
    assert line["bars"] == "M47 16V0"


def test_pages_hold_each_policy_once_with_exact_totals(
    reader: Client, django_assert_max_num_queries: DjangoAssertMaxNumQueries
) -> None:
    quota("q-000")
    quota("q-zzz")
    decided(1, "ResourceQuota", "q-000")
    reader.get("/policies/")
    with django_assert_max_num_queries(17) as few:
        reader.get("/policies/")
    made = ResourceQuota.objects.get(name="q-000")
    ResourceQuota.objects.bulk_create(
        ResourceQuota(namespace=made.namespace, name=f"q-{number:03}")
        for number in range(1, 2 * USUAL_ROWS + 4)
    )
    decided(2, "ResourceQuota", "q-077")
    decided(3, "ResourceQuota", "q-077")
    with django_assert_max_num_queries(len(few)):
        first = listed(reader)
    assert names(first)[:3] == ["q-077", "q-000", "q-001"]
    found = [name for page in (1, 2, 3) for name in names(listed(reader, f"?page={page}"))]
    assert len(found) == len(set(found)) == first["total"] == 2 * USUAL_ROWS + 5
    assert len(names(listed(reader, "?page=3"))) == 5
    assert names(listed(reader, "?order=name&page=2"))[0] == f"q-{USUAL_ROWS:03}"


@pytest.mark.usefixtures("fleet")
def test_address_of_one_clusters_list_leads_to_the_fleets(reader: Client) -> None:
    answer = reader.get("/clusters/prod/policies/?kind=ResourceQuota")
    assert answer["Location"] == "/policies/?kind=ResourceQuota&cluster=prod"
    assert reader.get("/clusters/nowhere/policies/").status_code == 404
    other = Client()
    other.force_login(people.person("bob", cluster="edge"))
    assert other.get("/clusters/prod/policies/").status_code == 404


def test_an_empty_fleet_says_what_policies_are(reader: Client) -> None:
    page = reader.get("/policies/").content.decode()
    assert "No policy yet" in page
    assert "/policies/new/" not in page


class TestNewPolicy:
    """The page that asks for kind and place."""

    @pytest.fixture
    def editor(self, client: Client) -> Client:
        quota()
        factories.namespace("closed")
        client.force_login(people.person("eva", "editor", cluster="prod", namespace="team"))
        return client

    def asked(self, client: Client, kind: str, namespace: str, cluster: str = "prod") -> Any:
        query = {"asked": "1", "kind": kind, "cluster": cluster, "namespace": namespace}
        return client.get("/policies/new/", query)

    def test_list_offers_it_with_what_is_known(self, editor: Client) -> None:
        page = editor.get("/policies/?cluster=prod&kind=LimitRange").content.decode()
        assert "/policies/new/?kind=LimitRange&amp;cluster=prod" in page
        form = editor.get("/policies/new/?kind=LimitRange&cluster=prod").context["form"]
        assert (form.is_bound, form["kind"].value(), form["cluster"].value()) == (
            False,
            "LimitRange",
            "prod",
        )

    def test_answers_lead_to_the_editor(self, editor: Client) -> None:
        answer = self.asked(editor, "MetadataPolicy", "team")
        assert answer["Location"] == "/clusters/prod/namespaces/team/metadatapolicies/new"

    def test_priority_class_needs_no_namespace(self, client: Client) -> None:
        quota()
        client.force_login(people.person("eva", "editor", cluster="prod"))
        assert (
            self.asked(client, "PriorityClass", "")["Location"]
            == "/clusters/prod/priorityclasses/new"
        )

    @pytest.mark.parametrize(
        ("answers", "error"),
        [
            (("LimitRange", ""), ("namespace", "unknown")),
            (("LimitRange", "nowhere"), ("namespace", "unknown")),
            (("LimitRange", "closed"), ("namespace", "unknown")),
            (("LimitRange", "te\0am"), ("namespace", "null_characters_not_allowed")),
            (("LimitRange", "team", "elsewhere"), ("cluster", "invalid_choice")),
            (("Pod", "team"), ("kind", "invalid_choice")),
            (("PriorityClass", ""), ("__all__", "forbidden")),
        ],
    )
    def test_wrong_answers_are_shown_at_their_field(
        self, editor: Client, answers: tuple[str, ...], error: tuple[str, str]
    ) -> None:
        answer = self.asked(editor, *answers)
        assert answer.status_code == 200
        errors = answer.context["form"].errors.get_json_data()
        assert [(name, each["code"]) for name in errors for each in errors[name]] == [error]

    def test_who_may_write_nothing_is_refused(self, reader: Client) -> None:
        assert reader.get("/policies/new/").status_code == 403
