"""What lists of policies may be asked: filters, order, labels, members; the rest is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.http import urlencode

from engine.selector import SelectorError, parse_selector
from policies import services
from policies.models import (
    Charge,
    Cluster,
    LimitRange,
    Namespace,
    PriorityClass,
    RoleChange,
)
from tests import api_document, factories, people
from tests.kept_tests import kept

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
START = datetime(2025, 1, 1, tzinfo=UTC)
LISTS = (
    "clusters", "namespaces", "limitranges", "metadatapolicies", "resourcequotas",
    "priorityclasses", "limitedresources", "credentials", "revisions", "rolechanges", "charges",
    "tests",
)  # fmt: skip
OF_PEOPLE = ("rolebindings", "tokens", "serviceaccounts", "savedviews", "legalholds")
LABELLED = (
    *("namespaces", "limitranges", "metadatapolicies", "resourcequotas", "priorityclasses"),
    "tests",
)
POD = {"type": "Pod", "max": {"cpu": "1"}}
CONTAINER = {"type": "Container", "max": {"memory": "1Gi"}}


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(people.person("reader"))
    return client


def got(reader: Client, address: str, **query: Any) -> Any:
    answer = reader.get(f"/api/v1/{address}/?{urlencode(query)}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def names(reader: Client, address: str, **query: Any) -> list[str]:
    results = got(reader, address, **query)["results"]
    return [each["metadata"]["name"] if "metadata" in each else each["name"] for each in results]


def refusal(reader: Client, address: str, query: str) -> tuple[str, str, str]:
    """The parameter, the code and the message of a 400."""
    answer = reader.get(f"/api/v1/{address}/?{query}")
    assert answer.status_code == 400, answer.content
    [(name, [error])] = answer.json()["errors"].items()
    return name, error["code"], error["message"]


@pytest.fixture
def ranges() -> list[LimitRange]:
    """Three ranges, a day between each: web, WEB-2 in another namespace, api in another cluster."""
    made = [
        factories.limit_range(POD, name="web", labels={"app": "web", "tier": "front"}),
        factories.limit_range(CONTAINER, name="web-2", namespace="other", labels={"app": "api"}),
        factories.apply(
            factories.manifest("LimitRange", {"limits": [POD, CONTAINER]}, name="api"),
            in_cluster="test",
        ),
    ]
    LimitRange.objects.filter(name="web-2").update(enforcement="warn", revision=2)
    LimitRange.objects.filter(name="api").update(enforcement="audit", revision=3)
    for number, each in enumerate(made):
        moment = START + timedelta(days=number)
        LimitRange.objects.filter(pk=each.pk).update(created=moment, updated=moment)
    return made


@pytest.fixture
def one_of_each() -> None:
    """An object in every list."""
    factories.limit_range(POD)
    factories.metadata_policy()
    quota = factories.resource_quota({"pods": "1"})
    factories.apply(kept())
    factories.priority_class()
    factories.limited_resources({"resource": "pods"})
    cluster = Cluster.objects.get()
    services.issue_webhook_credential(cluster=cluster, label="l", user="x")
    RoleChange.objects.create(action="given", subject="ada", role="viewer", actor="bob")
    Charge.objects.create(
        cluster=cluster, quota_uid=quota.uid, namespace="team", resource="pods", object_uid="u"
    )


@pytest.mark.usefixtures("ranges")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"name": "WEB"}, ["web", "web-2"]),
        ({"name__exact": "web"}, ["web"]),
        ({"name__exact": "WEB"}, []),
        ({"name__in": "web,api"}, ["web", "api"]),
        ({"name__in": "web, api"}, ["web", "api"]),
        ({"name__in": "we"}, []),
        ({"name__contains": "b-"}, ["web-2"]),
        ({"name__contains": "B-"}, []),
        ({"name__contains": "%"}, []),
        ({"cluster": "prod"}, ["web", "web-2"]),
        ({"cluster__in": "test,nothing"}, ["api"]),
        ({"namespace": "other"}, ["web-2"]),
        ({"namespace__in": "other,team"}, ["web", "web-2", "api"]),
        ({"namespace__in": "other", "cluster__in": "test"}, []),
        ({"enforcement": "warn"}, ["web-2"]),
        ({"enforcement__in": "warn,audit"}, ["web-2", "api"]),
        ({"resource": "cpu"}, ["web", "api"]),
        ({"resource__in": "cpu,memory"}, ["web", "web-2", "api"]),
        ({"revision__gte": 2}, ["web-2", "api"]),
        ({"revision__lte": 2}, ["web", "web-2"]),
        ({"created__gte": "2025-01-02T00:00:00Z"}, ["web-2", "api"]),
        ({"created__gt": "2025-01-02T00:00:00Z"}, ["api"]),
        ({"created__lte": "2025-01-02T00:00:00Z"}, ["web", "web-2"]),
        ({"created__lt": "2025-01-02T00:00:00Z"}, ["web"]),
        ({"updated__gte": "2025-01-03T01:00:00+01:00"}, ["api"]),
        ({"updated__gt": "2025-01-03T00:00:00Z"}, []),
        ({"updated__lte": "2025-01-01"}, ["web"]),
        ({"updated__lt": "2025-01-01"}, []),
    ],
)
def test_each_suffix_narrows(reader: Client, query: dict[str, Any], found: list[str]) -> None:
    assert sorted(names(reader, "limitranges", **query)) == sorted(found)


def test_upper_case_counts_in_contains_on_every_database(reader: Client) -> None:
    factories.cluster()
    RoleChange.objects.create(action="given", subject="Ada", role="viewer", actor="Bob")
    services.issue_webhook_credential(cluster=Cluster.objects.get(), label="Blue", user="x")
    assert got(reader, "credentials", label__contains="Blu")["count"] == 1
    assert got(reader, "credentials", label__contains="blu")["count"] == 0
    assert got(reader, "rolechanges", subject__in="Ada,Eve")["count"] == 1
    assert got(reader, "rolechanges", subject__in="ada,eve")["count"] == 0


def test_the_other_lists_take_their_suffixes(reader: Client) -> None:
    namespace = factories.namespace()
    Namespace.objects.create(cluster=namespace.cluster, name="going", phase="Terminating")
    factories.priority_class("high", 5, globalDefault=True)
    factories.priority_class("low", 1)
    quota = factories.resource_quota({"pods": "1"})
    charge = {"cluster": namespace.cluster, "quota_uid": quota.uid, "namespace": "team"}
    for number, state in enumerate(Charge.State.values):
        Charge.objects.create(resource="pods", object_uid=f"u{number}", state=state, **charge)
    RoleChange.objects.create(action="given", subject="ada", role="viewer", actor="bob")
    assert names(reader, "namespaces", phase__in="Terminating") == ["going"]
    assert names(reader, "namespaces", phase__in="Terminating,Active") == ["going", "team"]
    assert names(reader, "priorityclasses", global_default="true") == ["high"]
    assert names(reader, "priorityclasses", global_default="false") == ["low"]
    assert names(reader, "clusters", name__in="prod,x") == ["prod"]
    assert got(reader, "charges", state__in="reserved,released")["count"] == 2
    assert got(reader, "charges", quota__in="rq", object_uid__in="u0,u9")["count"] == 1
    assert got(reader, "revisions", kind__in="PriorityClass,Cluster")["count"] == 3
    assert got(reader, "revisions", user__in="tester,nobody", action__in="update")["count"] == 0
    assert got(reader, "revisions", number__gte=2)["count"] == 0
    assert got(reader, "rolechanges", role="viewer", actor__in="bob", action="given")["count"] == 1
    assert got(reader, "rolechanges", created__lt="2025-01-01")["count"] == 0


@pytest.mark.parametrize(
    ("address", "query", "name", "code"),
    [
        ("limitranges", "enforcement=never", "enforcement", "invalid_choice"),
        ("limitranges", "enforcement__in=warn,never", "enforcement__in", "invalid_choice"),
        ("limitranges", "name__in=", "name__in", "empty_value"),
        ("limitranges", "cluster=", "cluster", "empty_value"),
        ("limitranges", "cluster=%20", "cluster", "empty_value"),
        ("limitranges", "cluster=a&cluster=b", "cluster", "repeated_parameter"),
        ("limitranges", "revision__gte=1.5", "revision__gte", "invalid"),
        ("limitranges", "revision__gte=-1", "revision__gte", "min_value"),
        ("limitranges", "revision__lte=9223372036854775808", "revision__lte", "max_value"),
        ("limitranges", "created__gte=yesterday", "created__gte", "invalid"),
        ("limitranges", "created__lt=9999-12-31", "created__lt", "max_value"),
        ("limitranges", "updated__gt=0001-01-01T00:00:00Z", "updated__gt", "min_value"),
        ("limitranges", "created=2025-01-01", "created", "unknown_parameter"),
        ("limitranges", "name__startswith=a", "name__startswith", "unknown_parameter"),
        ("metadatapolicies", "reject=perhaps", "reject", "invalid_choice"),
        ("priorityclasses", "global_default=1", "global_default", "invalid_choice"),
        ("credentials", "revoked=maybe", "revoked", "invalid_choice"),
        ("namespaces", "phase__in=Gone", "phase__in", "invalid_choice"),
        ("charges", "state__in=reserved,gone", "state__in", "invalid_choice"),
        ("revisions", "action__in=destroy", "action__in", "invalid_choice"),
        ("revisions", "name=%00", "name", "null_characters_not_allowed"),
        ("rolechanges", "action=kept", "action", "invalid_choice"),
        ("rolechanges", "subjekt=ada", "subjekt", "unknown_parameter"),
        ("clusters", "labelSelector=a", "labelSelector", "unknown_parameter"),
        ("charges", "labelSelector=a", "labelSelector", "unknown_parameter"),
    ],
)
def test_what_cannot_be_used_is_refused(
    reader: Client, address: str, query: str, name: str, code: str
) -> None:
    assert refusal(reader, address, query)[:2] == (name, code)


@pytest.mark.usefixtures("ranges")
@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("name", ["api", "web", "web-2"]),
        ("-name", ["web-2", "web", "api"]),
        ("created", ["web", "web-2", "api"]),
        ("-updated", ["api", "web-2", "web"]),
        ("-revision", ["api", "web-2", "web"]),
        ("revision, name", ["web", "web-2", "api"]),
    ],
)
def test_lists_are_sorted(reader: Client, keys: str, found: list[str]) -> None:
    assert names(reader, "limitranges", ordering=keys) == found


@pytest.mark.usefixtures("ranges")
def test_without_an_order_lists_keep_their_own(reader: Client) -> None:
    # By cluster and namespace, then by name.
    assert names(reader, "limitranges") == ["web-2", "web", "api"]


@pytest.mark.parametrize("keys", ["revision", "-revision", "created"])
def test_rows_of_equal_keys_are_on_one_page_each(reader: Client, keys: str) -> None:
    cluster = factories.cluster()
    made = PriorityClass.objects.bulk_create(
        PriorityClass(cluster=cluster, name=f"c{number}", value=number) for number in range(20)
    )
    PriorityClass.objects.update(created=START)
    # A table that is written to returns equal rows in another order.
    PriorityClass.objects.filter(name="c3").update(description="x")
    paged = [
        name
        for offset in range(0, 20, 3)
        for name in names(reader, "priorityclasses", ordering=keys, limit=3, offset=offset)
    ]
    assert paged == [each.name for each in made]


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("address", [each for each in LISTS if each != "limitedresources"])
def test_the_id_is_the_last_key_of_every_order(reader: Client, address: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        got(reader, address, ordering="-created")
    assert any(re.search(r"ORDER BY .*created.* DESC, .*\bid\W* ASC", q["sql"]) for q in queries)


@pytest.mark.parametrize("address", [*LISTS, *OF_PEOPLE])
@pytest.mark.parametrize("keys", ["size", "pk", "--name", "name,", "cluster__name"])
def test_an_unknown_order_is_refused_with_the_known_ones(
    reader: Client, address: str, keys: str
) -> None:
    name, code, message = refusal(reader, address, urlencode({"ordering": keys}))
    assert (name, code) == ("ordering", "FieldValueNotSupported")
    assert "supported values: " in message


def test_the_refusal_names_the_field_and_all_known_ones(reader: Client) -> None:
    assert refusal(reader, "limitranges", "ordering=name,-size")[2] == (
        'Unsupported value: "-size": supported values: "name", "created", "updated", "revision"'
    )


def test_a_field_is_sorted_by_once(reader: Client) -> None:
    _, code, message = refusal(reader, "clusters", "ordering=name,-name")
    assert (code, message) == ("FieldValueDuplicate", 'Duplicate value: "name,-name"')


@pytest.mark.usefixtures("ranges")
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=web", ["web"]),
        ("app!=web", ["web-2", "api"]),
        ("app notin (web)", ["web-2", "api"]),
        ("app in (web,api),tier", ["web"]),
        ("!app", ["api"]),
        ("app", ["web-2", "web"]),
    ],
)
def test_labels_select(reader: Client, selector: str, found: list[str]) -> None:
    assert names(reader, "limitranges", labelSelector=selector) == found


def test_selected_rows_are_counted_and_paged_after_the_selection(reader: Client) -> None:
    for number in range(6):
        factories.limit_range(POD, name=f"r{number}", labels={"number": str(number)})
    for selector in ("number>2", "number notin (0,1,2)"):
        page = got(reader, "limitranges", labelSelector=selector, limit=2, ordering="-name")
        assert page["count"] == 3
        assert [each["metadata"]["name"] for each in page["results"]] == ["r5", "r4"]
    chosen = got(reader, "limitranges", labelSelector="number>2", resource="cpu", name__in="r3,r1")
    assert [each["metadata"]["name"] for each in chosen["results"]] == ["r3"]


def test_selected_rows_stay_within_roles(client: Client) -> None:
    factories.limit_range(POD, name="mine", labels={"1": "1"})
    factories.limit_range(POD, name="hidden", namespace="other", labels={"1": "1"})
    client.force_login(people.person("ada", cluster="prod", namespace="team"))
    assert names(client, "limitranges", labelSelector="1=1") == ["mine"]


@pytest.mark.parametrize("address", LABELLED)
@pytest.mark.parametrize(
    "selector", ["=", "a in", "a in (b", "a>x", "a,,b", "-a", "a=b c", "a=" + "x" * 64]
)
def test_a_faulty_selector_is_refused_in_the_engines_words(
    reader: Client, address: str, selector: str
) -> None:
    with pytest.raises(SelectorError) as error:
        parse_selector(selector)
    refused = refusal(reader, address, urlencode({"labelSelector": selector}))
    assert refused == ("labelSelector", "FieldValueInvalid", str(error.value))


@pytest.mark.usefixtures("ranges")
def test_lists_answer_the_named_members_only(reader: Client) -> None:
    page = got(reader, "limitranges", fields="metadata.name,metadata.labels,spec.limits.type")
    assert page["count"] == 3
    assert page["results"][0] == {
        "metadata": {"name": "web-2", "labels": {"app": "api"}},
        "spec": {"limits": [{"type": "Container"}]},
    }


def test_one_object_answers_the_named_members_only(
    reader: Client, ranges: list[LimitRange]
) -> None:
    assert got(reader, f"limitranges/{ranges[0].pk}", fields="kind, enforcement") == {
        "kind": "LimitRange",
        "enforcement": "enforce",
    }
    assert got(reader, "clusters/prod", fields="id") == {"id": Cluster.objects.get(name="prod").pk}


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("address", LISTS)
def test_every_member_of_an_answer_can_be_named(reader: Client, address: str) -> None:
    [whole, *_] = got(reader, address)["results"]
    for member, value in whole.items():
        assert got(reader, address, fields=member)["results"][0] == {member: value}


@pytest.mark.parametrize(
    ("address", "query", "code", "message"),
    [
        (
            "clusters",
            "fields=nmae",
            "unknown_field",
            'unknown field "nmae"; did you mean name? known: covers_kube_system, created',
        ),
        (
            "namespaces",
            "fields=metadata.lables",
            "unknown_field",
            'unknown field "metadata.lables"; did you mean metadata.labels? known: metadata.an',
        ),
        ("clusters", "fields=name.first", "unknown_field", 'unknown field "name.first"; '),
        ("clusters", "fields=", "empty_value", "must not be empty"),
        ("clusters", "fields=name,", "unknown_field", 'unknown field ""; '),
        ("clusters", "fields=reason", "unknown_field", 'unknown field "reason"; '),
        ("credentials", "fields=digest", "unknown_field", 'unknown field "digest"; '),
        ("clusters", "fields=" + "name," * 100 + "id", "FieldValueTooMany", "Too many: 101: "),
    ],
)
def test_unknown_members_are_refused(
    reader: Client, address: str, query: str, code: str, message: str
) -> None:
    name, given_code, given_message = refusal(reader, address, query)
    assert (name, given_code) == ("fields", code)
    assert given_message.startswith(message)


def test_errors_stay_whole(reader: Client) -> None:
    answer = reader.get("/api/v1/clusters/none/?fields=name")
    assert (answer.status_code, answer.json()["status"]) == (404, 404)


def test_writes_answer_everything(client: Client) -> None:
    client.force_login(people.person("ada", "admin"))
    answer = client.post(
        "/api/v1/clusters/?fields=name", {"name": "c"}, content_type="application/json"
    )
    assert answer.json()["errors"]["fields"][0]["code"] == "unknown_parameter"


@pytest.mark.parametrize("address", [*LISTS, *OF_PEOPLE, "decisions"])
def test_the_schema_shows_every_parameter_that_a_list_knows(reader: Client, address: str) -> None:
    paths = api_document.document()["paths"]
    shown = {each["name"] for each in paths[f"/api/v1/{address}/"]["get"]["parameters"]}
    message = refusal(reader, address, "clutser=prod")[2]
    assert set(message.rpartition("known: ")[2].split(", ")) == shown
    assert {"fields", "limit"} <= shown
    assert ("ordering" in shown) is (address != "decisions")
    assert ("labelSelector" in shown) is (address in LABELLED)
