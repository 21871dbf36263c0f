"""Bodies of the API are read as manifests are: nothing unknown passes, and nothing is guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from rest_framework.test import APIClient

from policies import services
from policies.models import (
    Cluster,
    LimitRange,
    Namespace,
    PolicyRevision,
    ResourceQuota,
    WebhookCredential,
)
from tests import factories, people

pytestmark = pytest.mark.django_db
PATTERN = r"quantities must match the regular expression"


def send(method: str, path: str, body: Any = None, *, code: int, **headers: str) -> Any:
    client = APIClient()
    found = User.objects.filter(username="chief").first() or people.person("chief", "admin")
    client.force_authenticate(found)
    extra = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    answer = getattr(client, method)(f"/api/v1/{path}", headers=headers, **extra)
    assert answer.status_code == code, answer.content
    return answer.json() if answer.content else None


def quota(**spec: Any) -> dict[str, Any]:
    factories.namespace()
    metadata = {"name": "rq", "namespace": "team"}
    return {"cluster": "prod", "metadata": metadata, "spec": spec}


def pods(**more: Any) -> dict[str, Any]:
    return {**quota(hard={"pods": "5"}), **more}


@pytest.mark.parametrize(
    ("path", "spec", "field", "near"),
    [
        ("resourcequotas/", {"hardd": {"pods": "1"}}, "spec.hardd", "hard"),
        ("metadatapolicies/", {"rulez": []}, "spec.rulez", "rules"),
        ("limitranges/", {"limitz": []}, "spec.limitz", "limits"),
        ("limitranges/", {"limits": [{"typ": "Pod"}]}, "spec.limits[0].typ", "type"),
    ],
)
def test_a_field_that_no_policy_has_is_refused_with_the_one_it_is_near_to(
    path: str, spec: dict[str, Any], field: str, near: str
) -> None:
    [error] = send("post", path, quota(**spec), code=422)["errors"][field]
    assert error["code"] == "unknown_field"
    assert f"did you mean {near}? known: " in error["message"]
    assert not PolicyRevision.objects.filter(namespace="team").exists()


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("resourcequotas/", {"enforcment": "warn"}, "enforcment"),
        ("resourcequotas/", {"metadata": {"name": "rq", "lables": {}}}, "metadata.lables"),
        ("resourcequotas/", {"reson": "x"}, "reson"),
        ("clusters/", {"name": "c", "descripton": "d"}, "descripton"),
        ("namespaces/", {"cluster": "prod", "metadata": {"name": "n"}, "fase": "x"}, "fase"),
        ("priorityclasses/", {"metadata": {"name": "p"}, "value": 1, "globaldefault": True},
         "globaldefault"),
        ("credentials/", {"cluster": "prod", "label": "l", "expire": "2030-01-01"}, "expire"),
    ],
)  # fmt: skip
def test_every_kind_refuses_what_it_does_not_know(
    path: str, body: dict[str, Any], field: str
) -> None:
    full = pods()
    body = {**full, **body} if path == "resourcequotas/" else body
    [error] = send("post", path, body, code=422)["errors"][field]
    assert error["code"] == "unknown_field"


def test_limited_resources_refuse_what_they_do_not_know() -> None:
    factories.cluster()
    body = {"limitedResources": [{"resource": "pods", "matchContain": ["cpu"]}]}
    errors = send("put", "limitedresources/prod/", body, code=422)["errors"]
    assert list(errors) == ["limitedResources[0].matchContain"]


@pytest.mark.parametrize("text", ["po\0ds", "\ud800"])
def test_limited_resources_have_texts_that_databases_store(text: str) -> None:
    factories.cluster()
    body = {"limitedResources": [{"resource": text}]}
    errors = send("put", "limitedresources/prod/", body, code=400)["errors"]
    assert "limitedResources[0].resource" in errors


def test_null_among_the_values_of_a_scope_is_an_empty_text() -> None:
    factories.cluster()
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high", None]}
    body = {"limitedResources": [{"resource": "pods", "matchScopes": [scope]}]}
    answer = send("put", "limitedresources/prod/", body, code=200)
    assert answer["limitedResources"][0]["matchScopes"][0]["values"] == ["high", ""]
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}
    send("post", "resourcequotas/", quota(hard={"pods": "1"}, scopeSelector=selector), code=201)


@pytest.mark.parametrize(
    ("name", "said"), [("kind", "LimitRange"), ("apiVersion", "v2"), ("kind", 5)]
)
def test_a_body_of_another_kind_is_refused(name: str, said: Any) -> None:
    errors = send("post", "resourcequotas/", pods(**{name: said}), code=422)["errors"]
    assert list(errors) == [name]
    assert not ResourceQuota.objects.exists()


@pytest.mark.parametrize("body", [[], "text", 5, [{"metadata": {}}]])
def test_a_body_that_is_no_map_is_refused(body: Any) -> None:
    assert "" in send("post", "resourcequotas/", body, code=422)["errors"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": 5}, "name"),
        ({"name": "c", "external_id": 0}, "external_id"),
        ({"name": "c", "unconfirmed_limit": "5"}, "unconfirmed_limit"),
        ({"name": "c", "kubernetes_version": 1.37}, "kubernetes_version"),
        ({"name": "c", "failure_policy": True}, "failure_policy"),
        ({"name": "c", "excluded_namespaces": "ci"}, "excluded_namespaces"),
        ({"name": "c", "description": True}, "description"),
    ],
)
def test_nothing_is_taken_for_another_type(body: dict[str, Any], field: str) -> None:
    assert list(send("post", "clusters/", body, code=422)["errors"]) == [field]


def test_a_version_that_is_not_known_is_refused_with_the_known_ones() -> None:
    body = {"name": "c", "kubernetes_version": "1.38"}
    [error] = send("post", "clusters/", body, code=400)["errors"]["kubernetes_version"]
    assert error == {"code": "invalid_choice", "message": "must be one of: 1.35, 1.36, 1.37"}


@pytest.mark.parametrize("word", ["fail", "Open", "", None])
def test_a_failure_policy_that_kubernetes_does_not_know_is_refused(word: str | None) -> None:
    errors = send("post", "clusters/", {"name": "c", "failure_policy": word}, code=400)["errors"]
    assert list(errors) == ["failure_policy"]


def test_a_cluster_fails_closed_unless_its_body_says_otherwise() -> None:
    assert send("post", "clusters/", {"name": "c"}, code=201)["failure_policy"] == "Fail"
    body = {"failure_policy": "Ignore", "reason": "the API server enforces, too"}
    changed = send("patch", "clusters/c/", body, code=200)
    assert (changed["failure_policy"], changed["revision"]) == ("Ignore", 2)
    assert PolicyRevision.objects.latest("pk").reason == body["reason"]
    assert (
        send("patch", "clusters/c/", {"description": "d"}, code=200)["failure_policy"] == "Ignore"
    )


def test_excluded_namespaces_are_names_in_order_and_stay_where_a_patch_names_none() -> None:
    body = {"name": "c", "excluded_namespaces": ["scratch", "ci"]}
    assert send("post", "clusters/", body, code=201)["excluded_namespaces"] == ["ci", "scratch"]
    patched = send("patch", "clusters/c/", {"description": "d"}, code=200)
    assert patched["excluded_namespaces"] == ["ci", "scratch"]
    for wrong in (["Team"], ["kube-system"], ["gatehouse-canary"], ["ci", "ci"]):
        body = {"excluded_namespaces": wrong}
        errors = send("patch", "clusters/c/", body, code=400)["errors"]
        assert list(errors) == ["excluded_namespaces"]


@pytest.mark.parametrize("spec", [{"hard": []}, {"hard": {"pods": []}}, {"scopes": "x"}])
def test_a_wrong_type_is_refused_at_its_field(spec: dict[str, Any]) -> None:
    errors = send("post", "resourcequotas/", quota(**spec), code=422)["errors"]
    assert all(path.startswith("spec.") for path in errors)


def test_what_was_read_can_be_written_back_as_it_is() -> None:
    made = send("post", "resourcequotas/", pods(kind="ResourceQuota", apiVersion="v1"), code=201)
    place = f"resourcequotas/{made['id']}/"
    again = send("put", place, send("get", place, code=200), code=200)
    assert again["revision"] == made["revision"]
    for path in ("clusters/prod/", f"namespaces/{Namespace.objects.get().pk}/"):
        send("put", path, send("get", path, code=200), code=200)


def test_an_amount_that_is_none_is_told_in_the_words_of_kubernetes() -> None:
    errors = send("post", "resourcequotas/", quota(hard={"pods": "ten"}), code=422)["errors"]
    [error] = errors["spec.hard[pods]"]
    assert error["message"].startswith(f'Invalid value: "ten": {PATTERN}')


def test_a_namespace_that_nobody_made_is_not_made_by_the_way() -> None:
    body = pods(metadata={"name": "rq", "namespace": "tema"})
    [error] = send("post", "resourcequotas/", body, code=422)["errors"]["metadata.namespace"]
    assert error["code"] == "unknown_namespace"
    assert "did you mean team?" in error["message"]
    assert not Namespace.objects.filter(name="tema").exists()


def test_a_namespace_is_made_where_that_is_asked_for() -> None:
    body = pods(metadata={"name": "rq", "namespace": "new"})
    send("post", "resourcequotas/?create_namespace=true", body, code=201)
    assert Namespace.objects.filter(name="new").exists()
    send("post", "resourcequotas/?create_namespace=maybe", body, code=400)


def test_who_may_not_make_namespaces_makes_none_by_the_way() -> None:
    body = pods(metadata={"name": "rq", "namespace": "new"})
    client = APIClient()
    client.force_authenticate(people.person("ed", "editor", cluster="prod"))
    answer = client.post("/api/v1/resourcequotas/?create_namespace=true", body, format="json")
    assert answer.status_code == 403
    assert not Namespace.objects.filter(name="new").exists()


def test_a_dry_run_stores_nothing_and_answers_what_would_be_stored() -> None:
    body = quota(hard={"limits.cpu": "1"})
    count = PolicyRevision.objects.count()
    shown = send("post", "resourcequotas/?dryRun=All", body, code=201)
    assert (shown["spec"], shown["id"]) == (body["spec"], None)
    assert [hint["code"] for hint in shown["warnings"]] == ["LimitsWithoutDefault"]
    made = send("post", "resourcequotas/", body, code=201)
    place = f"resourcequotas/{made['id']}/"
    changed = send("put", f"{place}?dryRun=All", quota(hard={"pods": "7"}), code=200)
    assert (changed["spec"], changed["revision"]) == ({"hard": {"pods": "7"}}, 2)
    assert send("delete", f"{place}?dryRun=All", code=200)["metadata"]["name"] == "rq"
    assert send("get", place, code=200)["spec"] == body["spec"]
    assert PolicyRevision.objects.count() == count + 1
    written = send("put", place, quota(hard={"pods": "7"}), code=200)
    assert written["spec"] == {"hard": {"pods": "7"}}


def test_a_dry_run_with_a_new_namespace_makes_neither() -> None:
    body = pods(metadata={"name": "rq", "namespace": "new"})
    send("post", "resourcequotas/?create_namespace=true&dryRun=All", body, code=201)
    assert not Namespace.objects.filter(name="new").exists()


def test_a_dry_run_refuses_what_the_write_would_refuse() -> None:
    send("post", "resourcequotas/?dryRun=All", quota(hard={"pods": "-1"}), code=400)
    send("post", "resourcequotas/", pods(), code=201)
    send("post", "resourcequotas/?dryRun=All", pods(), code=409)
    send("post", "resourcequotas/?dryRun=Some", pods(), code=400)


def test_every_other_write_can_be_tried() -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.limit_range()
    factories.priority_class()
    first = PolicyRevision.objects.filter(kind="LimitRange").earliest("id")
    credential = send("post", "credentials/", {"cluster": "prod", "label": "l"}, code=201)
    before = PolicyRevision.objects.count()
    revision = Cluster.objects.get().policy_revision
    entries = {"limitedResources": [{"resource": "pods", "matchContains": ["cpu"]}]}
    tries: list[tuple[str, str, Any, int]] = [
        ("post", "clusters/", {"name": "c"}, 201),
        ("put", "clusters/prod/", {"name": "prod", "description": "d"}, 200),
        ("post", "namespaces/", {"cluster": "prod", "metadata": {"name": "n"}}, 201),
        ("post", "priorityclasses/", {"cluster": "prod", "metadata": {"name": "p"}, "value": 1},
         201),
        ("put", "limitedresources/prod/", entries, 200),
        ("post", "credentials/", {"cluster": "prod", "label": "m"}, 201),
        ("post", f"credentials/{credential['id']}/revoke/", None, 200),
        ("post", f"revisions/{first.pk}/restore/", None, 200),
    ]  # fmt: skip
    shown = [send(method, f"{path}?dryRun=All", body, code=code)
             for method, path, body, code in tries]  # fmt: skip
    assert shown[4]["limitedResources"] == entries["limitedResources"]
    assert shown[5]["secret"] is None
    assert PolicyRevision.objects.count() == before
    assert Cluster.objects.get().policy_revision == revision
    assert WebhookCredential.objects.filter(revoked=None).count() == 1
    assert LimitRange.objects.get().to_manifest()["spec"]["limits"] == []


def test_a_cluster_goes_only_on_purpose() -> None:
    factories.limit_range()
    refused = send("delete", "clusters/prod/", code=428)
    assert (refused["deletes"]["limitranges"], refused["deletes"]["namespaces"]) == (1, 1)
    send("delete", "clusters/prod/?confirm=prd", code=428)
    assert send("delete", "clusters/prod/", code=412, **{"If-Match": '"7"'})["revision"] == 1
    send("delete", "clusters/prod/?confirm=prod", code=412, **{"If-Match": '"7"'})
    assert LimitRange.objects.exists()
    send("delete", "clusters/prod/", code=204, **{"If-Match": '"1"'})
    assert not Cluster.objects.exists()


def test_a_dry_run_counts_what_goes_with_a_cluster() -> None:
    factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    factories.webhook_secret()
    shown = send("delete", "clusters/prod/?dryRun=All", code=200)
    assert shown["deletes"] == {
        "limitranges": 0, "metadatapolicies": 0, "resourcequotas": 1, "namespaces": 1,
        "priorityclasses": 0, "limitedresources": 0, "credentials": 1, "charges": 1, "tests": 0,
    }  # fmt: skip
    place = f"namespaces/{Namespace.objects.get().pk}/"
    counts = send("delete", f"{place}?dryRun=All", code=200)["deletes"]
    assert counts == {"limitranges": 0, "metadatapolicies": 0, "resourcequotas": 1, "tests": 0}
    assert ResourceQuota.objects.exists()


def test_any_deletion_can_name_the_revision_that_was_looked_at() -> None:
    made = send("post", "resourcequotas/", pods(), code=201)
    place = f"resourcequotas/{made['id']}/"
    send("delete", f"{place}?dryRun=All", code=412, **{"If-Match": '"2"'})
    send("delete", place, code=412, **{"If-Match": '"2"'})
    send("delete", place, code=204, **{"If-Match": '"1"'})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("clusters/", {"name": "prod"}),
        ("namespaces/", {"cluster": "prod", "metadata": {"name": "team"}}),
        ("priorityclasses/", {"cluster": "prod", "metadata": {"name": "high"}, "value": 1}),
        ("resourcequotas/", None),
    ],
)
def test_a_name_that_is_taken_is_a_conflict(path: str, body: dict[str, Any] | None) -> None:
    factories.priority_class()
    factories.resource_quota({"pods": "1"})
    send("post", path, body or pods(), code=409)


@pytest.mark.parametrize(
    ("raised", "code"), [(IntegrityError("taken"), 409), (Cluster.DoesNotExist(), 404)]
)
def test_who_comes_second_at_the_same_time_is_told_so(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, code: int
) -> None:
    def lose(**_given: Any) -> None:
        raise raised

    monkeypatch.setattr(services, "save_cluster", lose)
    assert "detail" in send("post", "clusters/", {"name": "c"}, code=code)


@pytest.mark.parametrize("path", ["namespaceclasses/", "resourcequotas/", "apply/", "simulations/"])
@pytest.mark.parametrize("levels", [201, 900, 9000])
def test_a_body_is_nested_as_deep_as_a_yaml_document_at_most(path: str, levels: int) -> None:
    deep = '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(people.person("chief", "admin"))
    answer = client.post(f"/api/v1/{path}", deep, content_type="application/json")
    assert answer.status_code == 400, answer.content[:300]
    assert "200 levels" in answer.json()["detail"]


def test_a_body_as_deep_as_a_yaml_document_is_read() -> None:
    factories.namespace()
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(people.person("chief", "admin"))
    deep = '{"spec":' + '{"a":' * 198 + "{}" + "}" * 199
    answer = client.post("/api/v1/namespaceclasses/", deep, content_type="application/json")
    assert answer.status_code == 422, answer.content[:300]
