"""Policies over HTTP: read by whoever is signed in, written by role, errors by path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from policies.models import LimitRange, Namespace, PolicyRevision
from tests import factories, people

pytestmark = pytest.mark.django_db
POD = {"type": "Pod", "max": {"cpu": "1"}}


def client(*, staff: bool = True) -> APIClient:
    name = "editor" if staff else "viewer"
    user = User.objects.filter(username=name).first() or people.person(
        name, "admin" if staff else "viewer"
    )
    found = APIClient()
    found.force_authenticate(user)
    return found


def send(method: str, path: str, body: Any = None, *, code: int) -> Any:
    text = body if isinstance(body, str) else json.dumps(body)
    call = getattr(client(), method)
    extra = {} if body is None else {"data": text, "content_type": "application/json"}
    answer = call(f"/api/v1/{path}", **extra)
    assert answer.status_code == code, answer.content
    return answer.json() if answer.content else None


def limits(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    factories.namespace()
    metadata = {"name": "lr", "namespace": "team"}
    return {"cluster": "prod", "metadata": metadata, "spec": {"limits": list(items)}, **more}


def test_a_policy_is_made_read_replaced_and_deleted() -> None:
    made = send("post", "limitranges/", limits(POD, enforcement="warn", reason="new"), code=201)
    assert (made["spec"], made["enforcement"], made["revision"]) == ({"limits": [POD]}, "warn", 1)
    place = f"limitranges/{made['id']}/"
    assert send("get", place, code=200)["kind"] == "LimitRange"
    replaced = send("put", place, limits(enforcement="audit", revision=1), code=200)
    assert (replaced["revision"], replaced["enforcement"]) == (2, "audit")
    send("delete", place + "?reason=old", code=204)
    last = PolicyRevision.objects.latest("id")
    assert (last.action, last.reason, last.user) == ("delete", "old", "editor")


def test_enforcement_in_the_api_server_stands_beside_the_manifest() -> None:
    made = send("post", "limitranges/", limits(POD, in_api_server="audit"), code=201)
    assert made["in_api_server"] == "audit"
    assert made["metadata"]["annotations"] == {}
    place = f"limitranges/{made['id']}/"
    changed = send("patch", place, {"in_api_server": "enforce", "revision": 1}, code=200)
    assert (changed["in_api_server"], changed["spec"]) == ("enforce", made["spec"])
    wrong = send("patch", place, {"in_api_server": "always", "revision": 2}, code=400)
    assert "in_api_server" in json.dumps(wrong)


def test_numbers_keep_their_text() -> None:
    body = json.dumps(limits({"type": "Pod", "max": {"cpu": 1}})).replace("1}}", "0.10}}")
    made = send("post", "limitranges/", body, code=201)
    assert made["spec"]["limits"][0]["max"] == {"cpu": "0.10"}


def test_errors_come_by_path() -> None:
    factories.cluster()
    body = limits({"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}})
    errors = send("post", "limitranges/", body, code=400)["errors"]
    assert list(errors) == ["spec.limits[0].min[cpu]"]


def test_a_refused_policy_makes_no_namespace() -> None:
    body = limits({"type": "nope"})
    body["metadata"]["namespace"] = "other"
    send("post", "limitranges/?create_namespace=true", body, code=400)
    assert not Namespace.objects.filter(name="other").exists()


def test_unreadable_json_is_refused() -> None:
    send("post", "limitranges/", '{"a": 1, "a": 2}', code=400)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"metadata": {"name": "x"}, "spec": {}}, "cluster", id="no cluster"),
        pytest.param(
            {"cluster": "no", "metadata": {"name": "x"}, "spec": {}},
            "cluster",
            id="unknown cluster",
        ),
    ],
)
def test_the_cluster_must_be_known(body: dict[str, Any], field: str) -> None:
    assert field in send("post", "limitranges/", body, code=400)["errors"]


def test_a_name_is_taken_once() -> None:
    send("post", "limitranges/", limits(POD), code=201)
    errors = send("post", "limitranges/", limits(POD), code=409)["errors"]
    assert [error["code"] for found in errors.values() for error in found] == ["unique_together"]


def test_a_stale_change_is_a_conflict() -> None:
    made = send("post", "limitranges/", limits(POD), code=201)
    place = f"limitranges/{made['id']}/"
    send("put", place, limits(revision=1), code=200)
    assert send("put", place, limits(POD, revision=1), code=409)["revision"] == 2


def test_hints_come_with_the_write() -> None:
    factories.namespace()
    body = {
        "cluster": "prod",
        "metadata": {"name": "rq", "namespace": "team"},
        "spec": {"hard": {"limits.cpu": "1"}},
    }
    made = send("post", "resourcequotas/", body, code=201)
    assert [w["code"] for w in made["warnings"]] == ["LimitsWithoutDefault"]
    assert made["status"]["used"] == {"limits.cpu": "0"}


def test_metadata_policies() -> None:
    factories.namespace("default")
    rule = {"policyAction": {"reject": True}}
    body = {"cluster": "prod", "metadata": {"name": "mp"}, "spec": {"rules": [rule]}}
    made = send("post", "metadatapolicies/", body, code=201)
    assert made["metadata"]["namespace"] == "default"
    assert send("get", "metadatapolicies/?reject=true", code=200)["count"] == 1


def test_lists_are_filtered_and_paged() -> None:
    for name in ("a", "b", "c"):
        factories.limit_range(POD, name=name)
    found = send("get", "limitranges/?namespace=team&cluster=prod&limit=2&resource=cpu", code=200)
    assert (found["count"], len(found["results"])) == (3, 2)
    assert send("get", "limitranges/?name=b&enforcement=enforce", code=200)["count"] == 1
    assert send("get", "limitranges/?cluster=other", code=200)["count"] == 0


def test_clusters_go_by_name() -> None:
    send("post", "clusters/", {"name": "c", "description": "d"}, code=201)
    changed = send("put", "clusters/c/", {"name": "c", "description": "e"}, code=200)
    assert (changed["description"], changed["revision"]) == ("e", 2)
    assert "name" in send("put", "clusters/c/", {"name": "d"}, code=400)["errors"]
    assert "name" in send("post", "clusters/", {"name": "No"}, code=400)["errors"]
    send("delete", "clusters/c/?confirm=c", code=204)


def test_namespaces() -> None:
    factories.cluster()
    body = {"cluster": "prod", "metadata": {"name": "n", "labels": {"a": "b"}}}
    made = send("post", "namespaces/", body, code=201)
    place = f"namespaces/{made['id']}/"
    changed = send("put", place, {**body, "phase": "Terminating"}, code=200)
    assert (changed["phase"], changed["metadata"]["labels"]) == ("Terminating", {"a": "b"})
    send("delete", place, code=204)


def test_priority_classes() -> None:
    factories.cluster()
    body = {"cluster": "prod", "metadata": {"name": "pc"}, "value": 5, "globalDefault": True}
    made = send("post", "priorityclasses/", body, code=201)
    place = f"priorityclasses/{made['id']}/"
    changed = send("put", place, {**body, "value": 6}, code=200)
    assert (changed["value"], changed["globalDefault"]) == (6, True)
    errors = send("put", place, {**body, "value": 2_000_000_000}, code=400)["errors"]
    assert list(errors) == ["value"]
    send("delete", place, code=204)


def test_limited_resources() -> None:
    factories.cluster()
    entry = {"resource": "pods", "matchContains": ["cpu"]}
    body = {"limitedResources": [entry], "reason": "because"}
    assert send("put", "limitedresources/prod/", body, code=200)["limitedResources"] == [entry]
    send("put", "limitedresources/prod/", {"limitedResources": [{}]}, code=400)
    assert send("get", "limitedresources/", code=200)["results"][0]["cluster"] == "prod"


def test_credentials_show_their_secret_once() -> None:
    factories.cluster()
    made = send("post", "credentials/", {"cluster": "prod", "label": "l"}, code=201)
    assert len(made["secret"]) > 40
    assert send("get", f"credentials/{made['id']}/", code=200)["secret"] is None
    assert "digest" not in made
    assert send("post", f"credentials/{made['id']}/revoke/", code=200)["revoked"]
    assert send("get", "credentials/?revoked=true", code=200)["count"] == 1
    assert send("get", "credentials/?revoked=false", code=200)["count"] == 0


def test_history_is_read_and_restored() -> None:
    factories.limit_range(POD)
    factories.limit_range()
    [last, first] = send("get", "revisions/?kind=LimitRange", code=200)["results"]
    assert (last["number"], first["number"]) == (2, 1)
    path = f"revisions/{first['id']}/restore/"
    assert list(send("post", path, {"raeson": "x"}, code=422)["errors"]) == ["raeson"]
    restored = send("post", path, {"reason": "a mistake"}, code=200)
    assert (restored["number"], restored["action"]) == (3, "restore")
    assert restored["reason"] == "a mistake"
    assert LimitRange.objects.get().to_manifest() == first["after"]
    unchanged = send("post", f"revisions/{restored['id']}/restore/", code=200)
    assert unchanged["number"] == 3
    send("delete", f"revisions/{first['id']}/", code=405)


def test_charges_are_read() -> None:
    factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    [charge] = send("get", "charges/?quota=rq&cluster=prod", code=200)["results"]
    assert (charge["quota"], charge["amounts"]) == ("rq", {"pods": "3"})


def test_viewers_read_and_do_not_write() -> None:
    factories.limit_range(POD)
    viewer = client(staff=False)
    assert viewer.get("/api/v1/limitranges/").status_code == 200
    assert viewer.post("/api/v1/limitranges/", {}, format="json").status_code == 403


def test_strangers_read_nothing() -> None:
    assert APIClient().get("/api/v1/limitranges/").status_code in {401, 403}


def test_the_schema_is_clean(tmp_path: Any) -> None:
    call_command(
        "spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yaml")
    )


def test_each_operation_has_a_short_summary() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    summaries = {
        f"{method} {path}": operation.get("summary", "")
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    }
    assert summaries["post /api/v1/runs/"].startswith("Request a run")
    assert {name for name, each in summaries.items() if not 0 < len(each) <= 90} == set()
