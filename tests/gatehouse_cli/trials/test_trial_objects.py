"""Which objects of files are judged, which are skipped, and which are mistakes."""

from __future__ import annotations

import json

import pytest

from engine.decision import Reason
from gatehouse_cli.trials.trial_objects import NO_MANIFEST, Expectation
from tests.gatehouse_cli.manifests import LIMITS, candidates, deployment


def manifest(version: str, kind: str, namespace: str = "") -> str:
    metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata})


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Pod"),
        ("v1", "PodTemplate"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "ReplicationController"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("v1", "ConfigMap"),
        ("networking.k8s.io/v1", "Ingress"),
        ("policy.gatehouse.dev/v1alpha1", "MetadataPolicy"),
    ],
)
def test_objects_of_namespaces_are_judged(version: str, kind: str) -> None:
    found = candidates(manifest(version, kind))
    assert [each.item.kind for each in found.objects] == [kind]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Namespace"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("example.com/v1", "Widget"),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        ("v1", "Config"),
    ],
)
def test_others_are_skipped_and_counted(version: str, kind: str) -> None:
    found = candidates(manifest(version, kind), manifest(version, kind))
    assert (found.objects, found.problems, dict(found.skipped)) == ([], [], {kind: 2})


def test_custom_resource_is_judged_where_it_names_a_namespace() -> None:
    found = candidates(manifest("example.com/v1", "Widget", "shop"))
    assert [each.title for each in found.objects] == ["Widget shop/x"]


def test_job_of_another_maker_is_no_mistake() -> None:
    found = candidates(manifest("batch.example.com/v1", "Job", "shop"))
    assert (len(found.objects), found.problems) == (1, [])


def test_document_without_kind_and_version_is_no_manifest() -> None:
    found = candidates("image: {tag: '1'}", "resources: [deployment.yaml]")
    assert (found.objects, dict(found.skipped)) == ([], {NO_MANIFEST: 2})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "must be a map with apiVersion and kind"),
        ("apiVersion: v1", "kind: Required value"),
        ("{apiVersion: v1, kind: 3}", "kind: Required value"),
        ("kind: Pod", "apiVersion: Required value (such as v1)"),
        (manifest("apps/v1", "Deploymnt"), "did you mean Deployment?"),
        (manifest("extensions/v1beta1", "Deployment"), "write apps/v1"),
        (manifest("v1", "Deployment"), "write apps/v1"),
        (manifest("apps/v1beta1", "StatefulSet"), "write apps/v1"),
        (manifest("policy.gatehouse.dev/v1", "MetadataPolicy"), "policy.gatehouse.dev/v1alpha1"),
        ("{apiVersion: v1, kind: Pod, metadata: []}", "metadata: must be a map"),
        ("{apiVersion: v1, kind: Pod, metadata: {namespace: 1}}", "metadata.namespace: must be"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, said: str) -> None:
    found = candidates(LIMITS, text)
    [problem] = found.problems
    assert said in str(problem)
    assert str(problem).startswith("shop/web.yaml:9:")
    assert len(found.objects) == 1


def test_lists_in_lists_are_opened() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [json.loads(manifest("v1", "Pod"))]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner, inner]}
    found = candidates(json.dumps(outer))
    assert [each.item.path for each in found.objects] == ["items[0].items[0]", "items[1].items[0]"]


def test_members_of_a_typed_list_have_its_kind() -> None:
    found = candidates(
        "{apiVersion: apps/v1, kind: DeploymentList, items: [{metadata: {name: x}}]}"
    )
    assert [each.title for each in found.objects] == ["Deployment x"]


def test_kind_that_only_ends_like_a_list_is_an_object() -> None:
    found = candidates(manifest("example.com/v1", "AllowList", "shop"))
    assert [each.title for each in found.objects] == ["AllowList shop/x"]


def test_name_that_the_server_makes_is_shown_as_its_prefix() -> None:
    [found] = candidates("{apiVersion: v1, kind: Pod, metadata: {generateName: web-}}").objects
    assert found.title == "Pod web-*"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, None),
        ({"expect": "allow"}, Expectation(is_denial=False)),
        ({"expect": "deny"}, Expectation(is_denial=True)),
        (
            {"expect": "deny", "expect_reason": "MaxConstraint"},
            Expectation(is_denial=True, reason=Reason.MAX_CONSTRAINT),
        ),
        (
            {"expect_reason": "MaxConstraint"},
            Expectation(is_denial=True, reason=Reason.MAX_CONSTRAINT),
        ),
    ],
)
def test_expectation_is_read(annotations: dict[str, str], expected: Expectation | None) -> None:
    [found] = candidates(deployment(**annotations)).objects
    assert found.expected == expected


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"expect": "denied"}, "must be allow or deny"),
        ({"expect_reason": "MaxConstrain"}, "did you mean MaxConstraint?"),
        ({"expect_reason": "?"}, "reasons.md"),
        ({"expect": "allow", "expect_reason": "MaxConstraint"}, "only a denial has a reason"),
    ],
)
def test_misspelled_expectation_is_a_mistake(annotations: dict[str, str], said: str) -> None:
    [problem] = candidates(deployment(**annotations)).problems
    assert said in str(problem)
    assert problem.line in (7, 8)


def test_expectation_is_not_part_of_what_is_judged() -> None:
    [found] = candidates(deployment(expect="deny", team="a")).objects
    assert found.manifest["metadata"]["annotations"] == {"policy.gatehouse.dev/team": "a"}
