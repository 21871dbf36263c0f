"""Simulations, policies in effect and exports over REST: the same answers as pages give."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from policies.models import Namespace, QuotaUsage
from policies.simulation import simulate
from tests import factories, people

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/simulations/"


@pytest.fixture
def reader() -> APIClient:
    factories.limit_range({"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "2"}})
    factories.resource_quota({"limits.cpu": "4"}, used={"limits.cpu": "1"})
    client = APIClient()
    client.force_authenticate(people.person("reader"))
    return client


def pod(**resources: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "example.com/app:1", "resources": resources}
    metadata = {"name": "web", "namespace": "team"}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def sent(client: APIClient, obj: Any = None, code: int = 200, **more: Any) -> Any:
    body = {"cluster": "prod", "namespace": "team", "object": pod() if obj is None else obj, **more}
    answer = client.post(ADDRESS, json.dumps(body), content_type="application/json")
    assert answer.status_code == code, answer.content
    return json.loads(answer.content)


def test_admitted_object_shows_changes_with_their_causes_and_costs(reader: APIClient) -> None:
    found = sent(reader)
    assert (found["admitted"], found["decision"]["allowed"]) == (True, True)
    by_field = {change["field"]: change for change in found["changes"]}
    limit = by_field["spec.containers[0].resources.limits[cpu]"]
    assert (limit["before"], limit["after"]) == (None, "500m")
    assert limit["cause"]["policy"]["kind"] == "LimitRange"
    [cost] = found["costs"]
    assert (cost["charged"], cost["lines"][0]["requested"], cost["lines"][0]["room"]) == (
        True, "500m", 6,
    )  # fmt: skip


def test_it_answers_as_the_simulation_of_pages_does(reader: APIClient) -> None:
    for amount in ("1", "3", "x"):
        obj = pod(limits={"cpu": amount})
        found = sent(reader, obj)
        same = simulate(obj, cluster="prod", namespace="team")
        assert (found["sentence"], found["decision"]["code"]) == (same.sentence, same.decision.code)


def test_nothing_is_stored(reader: APIClient) -> None:
    before = list(QuotaUsage.objects.values_list("used", flat=True))
    sent(reader)
    assert list(QuotaUsage.objects.values_list("used", flat=True)) == before


def test_unsaved_policies_stand_in_for_stored_ones(reader: APIClient) -> None:
    strict = {
        "kind": "LimitRange", "metadata": {"name": "strict"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "100m"}}]},
    }  # fmt: skip
    found = sent(reader, policies=[strict])
    assert found["decision"]["violations"][0]["policy"] == {"kind": "LimitRange", "name": "strict"}
    assert sent(reader)["admitted"]


def test_numbers_of_the_object_stay_numbers(reader: APIClient) -> None:
    obj = pod()
    obj["spec"]["priority"] = 10
    assert sent(reader, obj)["decision"]["object"]["spec"]["priority"] == 10


def test_update_has_its_old_object(reader: APIClient) -> None:
    old = pod(limits={"cpu": "1"})
    old["metadata"]["resourceVersion"] = "5"
    found = sent(reader, pod(limits={"cpu": "3"}), oldObject=old)
    assert found["admitted"], "an update cannot change resources, so that ranges do not check it"


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        ({"objekt": {}}, 422, "objekt"),
        ({"object": {}}, 422, "object.kind"),
        ({"object": []}, 400, "object"),
        ({"cluster": "none"}, 400, "cluster"),
        ({"namespace": "tema"}, 422, "namespace"),
        ({"policies": [{"kind": "LimitRange", "spec": {"limits": 5}}]}, 422,
         "policies[0].spec.limits"),
    ],
)  # fmt: skip
def test_mistake_is_refused_at_its_field(
    reader: APIClient, more: dict[str, Any], code: int, field: str
) -> None:
    assert [*sent(reader, code=code, **more)["errors"]] == [field]


def test_hidden_namespace_is_no_other_than_an_unknown_one(reader: APIClient) -> None:
    factories.namespace(name="other")
    client = APIClient()
    client.force_authenticate(people.person("ed", "editor", cluster="prod", namespace="team"))
    hidden = sent(client, code=422, namespace="other")
    unknown = sent(client, code=422, namespace="othes")
    assert str(hidden).replace("other", "othes") == str(unknown)
    del reader


def test_large_body_is_refused(reader: APIClient) -> None:
    assert sent(reader, pod(x="y" * 300_000), code=413)["status"] == 413


def test_stranger_simulates_nothing() -> None:
    assert APIClient().post(ADDRESS, {}, format="json").status_code == 401


def test_policies_in_effect_come_in_their_order_of_evaluation(reader: APIClient) -> None:
    address = f"/api/v1/namespaces/{Namespace.objects.get().pk}/effective/"
    found = reader.get(address).json()
    kinds = [each["manifest"]["kind"] for each in found["policies"]]
    assert (kinds, found["authority"]) == (["LimitRange", "ResourceQuota"], "portal")
    assert found["policies"][1]["used"] == {"limits.cpu": "1"}
    assert reader.get(f"{address}?x=1").status_code == 400


def test_export_has_what_the_reader_sees(reader: APIClient) -> None:
    factories.namespace(name="other")
    address = "/api/v1/clusters/prod/export/"
    whole = reader.get(address)
    assert whole["Content-Type"] == "application/yaml"
    assert whole.content.decode().count("\nkind: ") == 4
    quotas = reader.get(f"{address}?kind=ResourceQuota&namespace=team").content.decode()
    assert quotas.count("kind: ") == 1
    client = APIClient()
    client.force_authenticate(people.person("ed", "editor", cluster="prod", namespace="other"))
    assert b"team" not in client.get(address).content
    assert client.get(f"{address}?namespace=team").status_code == 400
    nobody = APIClient()
    nobody.force_authenticate(people.person("al", "editor", cluster="prod", namespace="none"))
    answer = nobody.get(address)
    assert (answer.status_code, b"kind: " in answer.content) == (200, False)
    for wrong in ("kind=Pod", "namespace=none", "nmespace=team"):
        assert reader.get(f"{address}?{wrong}").status_code == 400


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"kind": "LimitRnge"}, "policies[0].kind"),
        ({"kind": "LimitRange", "metadata": {"name": "a"}, "spce": {}}, "policies[0].spce"),
        ({"kind": "LimitRange", "metadata": {"lables": {}}}, "policies[0].metadata.lables"),
        ({"kind": "LimitRange", "apiVersion": "v2"}, "policies[0].apiVersion"),
        ({"kind": "LimitRange", "spec": {"limits": []}}, "policies[0].metadata.name"),
        (
            {
                "kind": "ResourceQuota",
                "metadata": {"name": "a"},
                "spec": {"hard": {"pods": "-1"}},
            },
            "policies[0].spec.hard[pods]",
        ),
    ],
)
def test_unsaved_policies_are_checked_like_bodies(
    reader: APIClient, policy: dict[str, Any], field: str
) -> None:
    assert field in sent(reader, code=422, policies=[policy])["errors"]
