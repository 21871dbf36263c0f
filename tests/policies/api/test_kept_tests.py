"""Kept tests over REST: written by editors of the namespace, run, applied, exported."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from policies.models import KeptTest
from tests import factories, people
from tests.kept_tests import denied, kept, pod

pytestmark = pytest.mark.django_db
TESTS = "/api/v1/tests/"


def client_of(role: str = "editor", **scope: str) -> APIClient:
    client = APIClient()
    client.force_authenticate(people.person(f"{role}-{'-'.join(scope.values())}", role, **scope))
    return client


def send(client: APIClient, method: str, path: str, body: Any, **headers: str) -> Any:
    text = json.dumps(body)
    return getattr(client, method)(path, text, content_type="application/json", headers=headers)


def body_of(name: str = "too-large", **spec: Any) -> dict[str, Any]:
    manifest = kept(name, **spec)
    return {"cluster": "prod", "metadata": manifest["metadata"], "spec": manifest["spec"]}


@pytest.fixture
def editor() -> APIClient:
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    return client_of(cluster="prod", namespace="team")


def run(client: APIClient, code: int = 200, **body: Any) -> Any:
    sent = {"cluster": "prod", "namespace": "team", **body}
    answer = send(client, "post", f"{TESTS}run/", sent)
    assert answer.status_code == code, answer.content
    return answer.json()


def test_a_test_is_made_changed_and_deleted(editor: APIClient) -> None:
    made = send(editor, "post", TESTS, body_of())
    assert made.status_code == 201, made.content
    assert made.json()["author"] == "editor-prod-team"
    place = f"{TESTS}{made.json()['id']}/"
    taken = send(editor, "post", TESTS, body_of())
    assert taken.status_code == 409
    changed = send(editor, "put", place, {**body_of(expect={"verdict": "allow"}), "revision": 1})
    assert (changed.status_code, changed.json()["revision"]) == (200, 2)
    stale = send(editor, "put", place, {**body_of(), "revision": 1})
    assert stale.status_code == 409
    found = editor.get(f"{TESTS}?cluster=prod&namespace=team&name__exact=too-large").json()
    assert found["count"] == 1
    assert editor.delete(place).status_code == 204
    assert not KeptTest.objects.exists()


def test_a_dry_run_stores_nothing(editor: APIClient) -> None:
    assert send(editor, "post", f"{TESTS}?dryRun=All", body_of()).status_code == 201
    assert not KeptTest.objects.exists()


@pytest.mark.parametrize(
    ("role", "scope", "code"),
    [
        ("viewer", {"cluster": "prod"}, 403),
        ("auditor", {"cluster": "prod"}, 403),
        ("approver", {"cluster": "prod"}, 403),
        ("editor", {"cluster": "prod", "namespace": "other"}, 403),
        ("editor", {"cluster": "prod", "namespace": "team"}, 201),
        ("admin", {}, 201),
    ],
)
def test_who_writes_policies_writes_tests(role: str, scope: dict[str, str], code: int) -> None:
    factories.namespace()
    assert send(client_of(role, **scope), "post", TESTS, body_of()).status_code == code


def test_tests_of_hidden_namespaces_are_not_seen_or_run(editor: APIClient) -> None:
    test = factories.apply(kept())
    other = client_of("viewer", cluster="prod", namespace="elsewhere")
    assert other.get(f"{TESTS}{test.pk}/").status_code == 404
    assert other.get(TESTS).json()["count"] == 0
    run(other, 422)
    run(client_of("viewer", cluster="prod", namespace="team"))


@pytest.mark.parametrize(
    ("spec", "code", "field"),
    [
        ({"object": {}}, 400, "spec.object.kind"),
        ({"expect": {"verdict": "no"}}, 400, "spec.expect.verdict"),
        ({"expect": denied("Nothing")}, 400, "spec.expect.reasons[0]"),
        ({"object": pod(labels={"a": "\0"})}, 400, "spec.object.metadata.labels.a"),
        ({"object": pod(0.5)}, 400, "spec.object.spec.containers[0].resources.limits.cpu"),
        ({"expekt": {}}, 422, "spec.expekt"),
        ({"operation": 5}, 422, "spec.operation"),
        ({"used": {"q": {"pods": "x y"}}}, 422, "spec.used[q][pods]"),
    ],
)
def test_what_is_no_test_is_refused_at_its_field(
    editor: APIClient, spec: dict[str, Any], code: int, field: str
) -> None:
    answer = send(editor, "post", TESTS, body_of(**spec))
    assert (answer.status_code, list(answer.json()["errors"])) == (code, [field])


def test_deep_bodies_are_refused(editor: APIClient) -> None:
    body = json.dumps(body_of(object={"kind": "Pod", "a": "DEEP"}))
    deep = body.replace('"DEEP"', "[" * 100 + "]" * 100)
    answer = editor.post(TESTS, deep, content_type="application/json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["spec.object"])


def test_a_run_tells_what_is_red_and_why(editor: APIClient) -> None:
    factories.apply(kept())
    assert (run(editor)["passed"], run(editor)["red"]) == (1, 0)
    draft = {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "lr"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]},
    }  # fmt: skip
    found = run(editor, manifests=[draft])
    [result] = found["results"]
    assert (found["red"], result["name"], result["found"]) == (1, "too-large", "allow")
    assert [each["aspect"] for each in result["differences"]] == ["verdict"]
    assert run(editor)["red"] == 0, "nothing was stored"
    run(editor, 422, manifests=[{"kind": "Pod"}])
    run(editor, 422, manifests=[{**draft, "spec": {"limits": "odd"}}])
    run(editor, 422, namespace="nowhere")
    run(editor, 400, cluster="nowhere")


def apply(client: APIClient, *documents: Any, **options: Any) -> Any:
    body = {"cluster": "prod", "set": "shop", "documents": list(documents), **options}
    answer = send(client, "post", "/api/v1/apply/", body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_tests_are_applied_beside_policies_and_pruned(editor: APIClient) -> None:
    secret = pod()
    secret["spec"]["containers"][0]["env"] = [{"name": "KEY", "value": "hush"}]
    assert apply(editor, kept(object=secret))["counts"]["create"] == 1
    assert "hush" not in str(KeptTest.objects.get().spec)
    assert KeptTest.objects.get().author == "editor-prod-team"
    again = apply(editor, kept(object=secret))
    assert again["counts"]["unchanged"] == 1, "what is left out is no perpetual difference"
    changed = apply(editor, kept(expect={"verdict": "allow"}))
    assert changed["counts"]["change"] == 1
    assert KeptTest.objects.get().spec["expect"] == {"verdict": "allow"}
    pruned = apply(editor, prune=True, confirmDeletions=1)
    assert pruned["counts"]["delete"] == 1, pruned
    assert not KeptTest.objects.exists()


def test_an_export_has_the_tests_and_can_be_applied_again(editor: APIClient) -> None:
    factories.apply(kept(used={"q": {"pods": "2"}}, user="ada", decision="d1"))
    exported = editor.get("/api/v1/clusters/prod/export/?namespace=team").content.decode()
    assert "kind: PolicyTest" in exported
    body = {"cluster": "prod", "set": "shop", "documents": exported, "dryRun": True}
    counts = send(editor, "post", "/api/v1/apply/", body).json()["counts"]
    assert (counts["create"], counts["change"]) == (0, 0)
    only = editor.get("/api/v1/clusters/prod/export/?kind=LimitRange").content.decode()
    assert "PolicyTest" not in only
