"""Applying a set of documents over REST: plans, conflicts with their managers, prune, force."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from policies import services
from policies.models import LimitRange, Namespace, PolicyRevision, ResourceQuota
from policies.services import FieldWriter
from tests import factories, people

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/apply/"
TEXT = """\
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute, namespace: team}
spec: {hard: {pods: "10", requests.cpu: "4"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: team}
spec:
  limits:
  - type: Container
    max: {cpu: "2"}
"""


@pytest.fixture
def editor() -> APIClient:
    factories.cluster()
    client = APIClient()
    client.force_authenticate(people.person("robot", "admin", cluster="prod"))
    return client


def applied(client: APIClient, documents: Any = TEXT, code: int = 200, **more: Any) -> Any:
    body = {"cluster": "prod", "set": "platform", "commit": "3f2a91c", "documents": documents}
    answer = client.post(ADDRESS, json.dumps({**body, **more}), content_type="application/json")
    assert answer.status_code == code, answer.content
    return json.loads(answer.content)


def actions(plan: Any) -> dict[str, str]:
    return {each["kind"]: each["action"] for each in plan["objects"]}


def quota(hard: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    place = {"name": "compute", "namespace": "team", **metadata}
    spec = {"hard": hard or {"pods": "10", "requests.cpu": "4"}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": place, "spec": spec}


def stored_hard() -> dict[str, str]:
    hard: dict[str, str] = ResourceQuota.objects.get(name="compute").to_manifest()["spec"]["hard"]
    return hard


def edit(hard: dict[str, str], user: str = "anna") -> None:
    services.apply_manifest(
        cluster=factories.cluster(), manifest=quota(hard), user=user, reason="by hand"
    )


def test_plan_creates_in_a_dry_run_and_stores_nothing(editor: APIClient) -> None:
    for more in ({"dryRun": True}, {}):
        address = ADDRESS if more else f"{ADDRESS}?dryRun=All"
        body = {"cluster": "prod", "set": "platform", "documents": TEXT, **more}
        answer = editor.post(address, json.dumps(body), content_type="application/json")
        plan = json.loads(answer.content)
        assert (plan["dryRun"], plan["applied"], plan["counts"]["create"]) == (True, False, 3)
    assert not Namespace.objects.exists()
    diffs = {each["kind"]: each["diff"] for each in plan["objects"]}
    assert '+    pods: "10"' in diffs["ResourceQuota"].splitlines()


def test_set_is_stored_and_the_same_again_changes_nothing(editor: APIClient) -> None:
    first = applied(editor, reason="ticket 4711")
    assert (first["applied"], set(actions(first).values())) == (True, {"create"})
    number = PolicyRevision.objects.count()
    again = applied(editor)
    assert (again["applied"], again["counts"]["unchanged"]) == (True, 3)
    assert PolicyRevision.objects.count() == number
    revision = PolicyRevision.objects.get(kind="ResourceQuota")
    assert (revision.manager, revision.commit, revision.user, revision.reason) == (
        "git:platform", "3f2a91c", "robot", "ticket 4711",
    )  # fmt: skip


def test_list_of_manifests_is_the_same_as_a_text(editor: APIClient) -> None:
    applied(editor)
    assert applied(editor, [quota()])["counts"]["unchanged"] == 1


def test_change_is_said_in_words(editor: APIClient) -> None:
    applied(editor)
    plan = applied(editor, [quota({"pods": "12", "requests.cpu": "4"})])
    [planned] = plan["objects"]
    assert (planned["action"], planned["changes"]) == (
        "change", ["limit of pods raised from 10 to 12"],
    )  # fmt: skip
    assert stored_hard() == {"pods": "12", "requests.cpu": "4"}


def test_edit_elsewhere_is_a_conflict_that_names_manager_and_loses_nothing(
    editor: APIClient,
) -> None:
    applied(editor)
    edit({"pods": "20", "requests.cpu": "4"})
    plan = applied(editor, [quota(), quota({"pods": "1"}, name="other")])
    assert (plan["applied"], plan["blocked"][0]["code"]) == (False, "conflict")
    [conflict] = plan["objects"][0]["conflicts"]
    assert (conflict["field"], conflict["manager"], conflict["revision"]) == (
        "spec.hard[pods]", "ui:anna", 2,
    )  # fmt: skip
    assert stored_hard()["pods"] == "20"
    assert not ResourceQuota.objects.filter(name="other").exists(), "whole or not at all"


def test_edit_of_the_cluster_is_named_after_it(editor: APIClient) -> None:
    applied(editor)
    edit({"pods": "20", "requests.cpu": "4"}, user="cluster:prod")
    [conflict] = applied(editor, [quota()])["objects"][0]["conflicts"]
    assert conflict["manager"] == "sync:prod"


def test_another_set_is_a_conflict_that_names_its_commit(editor: APIClient) -> None:
    applied(editor)
    plan = applied(editor, [quota()], set="shop", commit="ffff")
    assert plan["objects"][0]["conflicts"][0]["manager"] == "git:platform"
    changed = applied(editor, [quota({"pods": "1"})], set="shop", commit="ffff")
    conflicts = {each["field"]: each for each in changed["objects"][0]["conflicts"]}
    assert conflicts["spec.hard[pods]"]["commit"] == "3f2a91c"


def test_force_takes_over_on_record(editor: APIClient) -> None:
    applied(editor)
    edit({"pods": "20", "requests.cpu": "4"})
    plan = applied(editor, [quota()], force=True, reason="agreed")
    assert (plan["applied"], actions(plan)["ResourceQuota"]) == (True, "change")
    assert stored_hard()["pods"] == "10"
    last = PolicyRevision.objects.filter(kind="ResourceQuota").first()
    assert last is not None
    assert last.reason == "agreed; takes over 1 field of ui:anna"
    assert applied(editor, [quota({"pods": "9", "requests.cpu": "4"})])["applied"]


def test_an_edit_that_the_repository_follows_is_no_conflict_later(editor: APIClient) -> None:
    applied(editor)
    edit({"pods": "20", "requests.cpu": "4"})
    followed = applied(editor, [quota({"pods": "20", "requests.cpu": "4"})])
    assert (followed["applied"], actions(followed)["ResourceQuota"]) == (True, "unchanged")
    assert applied(editor, [quota({"pods": "30", "requests.cpu": "4"})])["applied"]


def test_field_of_another_manager_is_kept_and_said(editor: APIClient) -> None:
    applied(editor)
    edit({"pods": "10", "requests.cpu": "4", "secrets": "7"})
    plan = applied(editor, [quota({"pods": "11", "requests.cpu": "4"})])
    [kept] = plan["objects"][0]["kept"]
    assert (kept["field"], kept["manager"]) == ("spec.hard[secrets]", "ui:anna")
    assert stored_hard() == {"pods": "11", "requests.cpu": "4", "secrets": "7"}


def test_own_field_that_the_documents_drop_is_removed(editor: APIClient) -> None:
    applied(editor)
    applied(editor, [quota({"pods": "10"})])
    assert stored_hard() == {"pods": "10"}


def test_removed_field_and_deleted_object_do_not_come_back_in_silence(editor: APIClient) -> None:
    applied(editor)
    edit({"requests.cpu": "4"})
    [conflict] = applied(editor, [quota()])["objects"][0]["conflicts"]
    assert (conflict["field"], conflict["removed"]) == ("spec.hard[pods]", True)
    stored = ResourceQuota.objects.get(name="compute")
    services.delete_policy(policy=stored, user="anna")
    [conflict] = applied(editor, [quota()])["objects"][0]["conflicts"]
    assert (conflict["field"], conflict["manager"], conflict["removed"]) == ("", "ui:anna", True)
    assert applied(editor, [quota()], force=True)["applied"]
    assert applied(editor, [quota()])["counts"]["unchanged"] == 1


def test_prune_deletes_what_the_set_manages_and_nothing_else(editor: APIClient) -> None:
    applied(editor)
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, name="by-hand")
    without = TEXT.rsplit("---\n", 1)[0]
    left = applied(editor, without)
    assert left["left"] == [{"kind": "LimitRange", "namespace": "team", "name": "limits"}]
    assert LimitRange.objects.count() == 2
    pruned = applied(editor, without, prune=True)
    assert (pruned["counts"]["delete"], pruned["left"]) == (1, [])
    assert list(LimitRange.objects.values_list("name", flat=True)) == ["by-hand"]
    last = PolicyRevision.objects.filter(kind="LimitRange", name="limits").first()
    assert last is not None
    assert (last.action, last.manager) == ("delete", "git:platform")


def test_prune_does_not_delete_an_edit_of_somebody_else(editor: APIClient) -> None:
    applied(editor)
    edit({"pods": "20", "requests.cpu": "4"})
    plan = applied(editor, [quota(name="new")], prune=True)
    assert not plan["applied"]
    assert ResourceQuota.objects.filter(name="compute").exists()
    assert not ResourceQuota.objects.filter(name="new").exists()


def test_prune_spares_a_namespace_with_policies_of_others(editor: APIClient) -> None:
    applied(editor)
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, name="by-hand")
    plan = applied(editor, [], prune=True, force=True)
    assert (plan["applied"], plan["blocked"][0]["code"]) == (False, "namespace-not-empty")
    assert "LimitRange by-hand" in plan["blocked"][0]["message"]
    LimitRange.objects.get(name="by-hand").delete()
    assert applied(editor, [], prune=True)["counts"]["delete"] == 3
    assert not Namespace.objects.exists()


def test_many_deletions_wait_for_their_number(editor: APIClient) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    quotas = [quota({"pods": "1"}, name=f"q{number}") for number in range(20)]
    applied(editor, [namespace, *quotas])
    plan = applied(editor, [namespace, *quotas[:5]], prune=True)
    assert (plan["applied"], plan["blocked"][0]["code"]) == (False, "prune-brake")
    assert ResourceQuota.objects.count() == 20
    applied(editor, [namespace, *quotas[:5]], prune=True, confirmDeletions=15)
    assert ResourceQuota.objects.count() == 5


def test_created_namespace_is_not_of_the_set(editor: APIClient) -> None:
    assert "unknown_namespace" in str(applied(editor, [quota()], 422))
    applied(editor, [quota()], createNamespaces=True)
    plan = applied(editor, [], prune=True)
    assert actions(plan) == {"ResourceQuota": "delete"}
    assert Namespace.objects.filter(name="team").exists()


def test_limited_resources_are_managed_too(editor: APIClient) -> None:
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": [{"resource": "pods", "matchContains": ["pods"]}],
    }
    assert applied(editor, [configuration])["counts"]["change"] == 1
    assert applied(editor, [configuration])["counts"]["unchanged"] == 1
    services.set_limited_resources(cluster=factories.cluster(), entries=[], user="anna")
    [conflict] = applied(editor, [configuration])["objects"][0]["conflicts"]
    assert (conflict["field"], conflict["manager"]) == ("limitedResources", "ui:anna")


def test_problems_of_documents_have_their_place(editor: APIClient) -> None:
    wrong = TEXT.replace('pods: "10"', 'pods: "-10"').replace("max: {cpu", "maxx: {cpu")
    errors = applied(editor, wrong, 422)["errors"]
    assert {field: each[0]["line"] for field, each in errors.items()} == {
        "documents.spec.hard[pods]": 8,
        "documents.spec.limits[0].maxx": 16,
    }
    [field] = applied(editor, [quota(), {**quota(name="b"), "spce": {}}], 422)["errors"]
    assert field == "documents[1].spce"


@pytest.mark.parametrize(
    ("more", "field", "code"),
    [
        ({"prnue": True}, "prnue", 422),
        ({"set": "Plat form"}, "set", 400),
        ({"set": ""}, "set", 400),
        ({"cluster": "prd"}, "cluster", 400),
        ({"documents": 7}, "documents", 400),
        ({"confirmDeletions": -1}, "confirmDeletions", 400),
        ({"commit": "x" * 65}, "commit", 400),
    ],
)
def test_mistakes_are_refused_with_their_field(
    editor: APIClient, more: dict[str, Any], field: str, code: int
) -> None:
    body = {"documents": TEXT, **more}
    assert list(applied(editor, code=code, **body)["errors"]) == [field]


def test_managers_of_an_object_are_listed(editor: APIClient) -> None:
    applied(editor)
    edit({"pods": "20", "requests.cpu": "4"})
    pk = ResourceQuota.objects.get(name="compute").pk
    found = editor.get(f"/api/v1/resourcequotas/{pk}/managers/").json()
    assert found["set"] == "platform"
    managers = {each["field"]: (each["manager"], each["commit"]) for each in found["fields"]}
    assert managers == {
        "spec.hard[pods]": ("ui:anna", ""),
        "spec.hard[requests.cpu]": ("git:platform", "3f2a91c"),
    }
    assert editor.get("/api/v1/clusters/prod/managers/").json() == {"set": "", "fields": []}


def test_permissions_are_those_of_each_object(editor: APIClient) -> None:
    applied(editor)
    reader, writer = APIClient(), APIClient()
    reader.force_authenticate(people.person("eve", "viewer", cluster="prod"))
    writer.force_authenticate(people.person("tom", "editor", cluster="prod", namespace="other"))
    changed = [quota({"pods": "11", "requests.cpu": "4"})]
    assert applied(reader, changed, dryRun=True)["counts"]["change"] == 1
    assert "ResourceQuota team/compute" in applied(reader, changed, 403)["detail"]
    hidden = applied(writer, changed, 422)
    assert "there is no namespace" in hidden["detail"]
    assert "no objects" not in hidden
    assert stored_hard()["pods"] == "10"


def test_prune_does_not_reveal_objects_that_the_user_may_not_see(editor: APIClient) -> None:
    applied(editor)
    other = APIClient()
    other.force_authenticate(people.person("tom", "editor", cluster="prod", namespace="other"))
    factories.namespace("other")
    answer = applied(other, [quota(namespace="other")], 403, prune=True, dryRun=True)
    assert "team" not in json.dumps(answer)


def test_a_plan_that_was_overtaken_is_made_anew(
    editor: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(editor)
    from policies.api import apply as view  # noqa: PLC0415

    real, calls = view.plan, []

    def overtaken(*args: Any, **kwargs: Any) -> Any:
        made = real(*args, **kwargs)
        if not calls:
            edit({"pods": "20", "requests.cpu": "4"})
        calls.append(made)
        return made

    monkeypatch.setattr(view, "plan", overtaken)
    plan = applied(editor, [quota()])
    assert (len(calls), plan["applied"]) == (2, False)
    assert stored_hard()["pods"] == "20"


def test_import_of_the_set_manager_is_not_lost_between_writes() -> None:
    cluster = factories.cluster()
    with services.managed_by(FieldWriter("git:one")):
        factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    found = services.keys_of_set(cluster, "one")
    assert {kind for kind, _, _ in found} == {"Namespace", "LimitRange"}
