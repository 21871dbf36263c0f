"""Thirty typos in bodies, queries, headers and flags: each is refused, and its place is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import ManagementUtility
from rest_framework.test import APIClient

from policies.models import PolicyRevision
from tests import factories, people

pytestmark = pytest.mark.django_db
META = {"name": "x", "namespace": "team"}
RULE = {"policyPredicate": {}, "policyAction": {"reject": True}}
QUOTA = {"cluster": "prod", "metadata": META, "spec": {"hard": {"pods": "1"}}}
CLASS = {"cluster": "prod", "metadata": {"name": "x"}, "value": 1}
SIMULATION = {"cluster": "prod", "namespace": "team", "object": {}}


def spec(**members: Any) -> dict[str, Any]:
    return {"cluster": "prod", "metadata": META, "spec": members}


def ranged(**item: Any) -> dict[str, Any]:
    return spec(limits=[{"type": "Pod", **item}])


def ruled(**rule: Any) -> dict[str, Any]:
    return spec(rules=[{**RULE, **rule}])


BODIES: list[tuple[str, dict[str, Any], str, str]] = [
    ("clusters/", {"name": "x", "desciption": "d"}, "desciption", "description"),
    ("namespaces/", {"cluster": "prod", "metadata": {"nmae": "x"}}, "metadata.nmae", "name"),
    ("namespaces/", {"cluster": "prod", "metadata": META, "pase": "Active"}, "pase", "phase"),
    ("priorityclasses/", {**CLASS, "preemtionPolicy": "Never"}, "preemtionPolicy", "preemp"),
    ("priorityclasses/", {**CLASS, "vlaue": 2}, "vlaue", "value"),
    ("resourcequotas/", spec(hrd={"pods": "1"}), "spec.hrd", "hard"),
    ("resourcequotas/", {**QUOTA, "clutser": "prod"}, "clutser", "cluster"),
    ("resourcequotas/", {**QUOTA, "metadata": {**META, "lables": {}}}, "metadata.lables", "labels"),
    ("resourcequotas/", spec(scopeSelector={"matchExpression": []}),
     "spec.scopeSelector.matchExpression", "matchExpressions"),
    ("limitranges/", ranged(defaultRequst={"cpu": "1"}), "spec.limits[0].defaultRequst", "default"),
    ("limitranges/", ranged(maxx={"cpu": "1"}), "spec.limits[0].maxx", "max"),
    ("metadatapolicies/", ruled(policyPredicat={}), "spec.rules[0].policyPredicat", "policyPred"),
    ("metadatapolicies/", ruled(policyAction={"rejct": True}),
     "spec.rules[0].policyAction.rejct", "reject"),
    ("credentials/", {"cluster": "prod", "label": "x", "expiers": "2030-01-01"}, "expiers", "expi"),
    ("simulations/", {**SIMULATION, "namespce": "team"}, "namespce", "namespace"),
    ("simulations/", {**SIMULATION, "policies": [{"kind": "LimitRnge"}]}, "policies[0].kind",
     "LimitRange"),
    ("token/", {"username": "x", "password": "y", "usrname": "x"}, "usrname", "username"),
]  # fmt: skip
QUERIES = [
    ("get", "resourcequotas/?namespce=team", "namespce", "namespace"),
    ("get", "resourcequotas/?labelselector=a", "labelselector", "labelSelector"),
    ("get", "resourcequotas/?ordering=nmae", "ordering", "name"),
    ("get", "resourcequotas/?fields=metdata", "fields", "metadata"),
    ("get", "resourcequotas/?enforcement=wran", "enforcement", ""),
    ("get", "decisions/?verdct=denied", "verdct", "verdict"),
    ("get", "decisions/?verdict=dennied", "verdict", ""),
    ("get", "clusters/prod/export/?kinds=LimitRange", "kinds", "kind"),
    ("get", "clusters/?limti=5", "limti", "limit"),
    ("post", "resourcequotas/?dryrun=All", "dryrun", "dryRun"),
    ("post", "resourcequotas/?dryRun=all", "dryRun", "All"),
    ("post", "resourcequotas/?create_namspace=true", "create_namspace", "create_namespace"),
]
FLAGS = [
    ("export_manifests --cluster prod --namspace team", "--namspace", "--namespace"),
    ("export_manifests --cluster prod --namespac team", "--namespac", "--namespace"),
    ("admit --outptu json", "--outptu", "--output"),
    ("quota_recount --repiar", "--repiar", "--repair"),
    ("audit_retention --dry", "--dry", "--dry-run"),
    ("cluster_authority prod native --raeson x", "--raeson", "--reason"),
]


@pytest.fixture
def chief() -> APIClient:
    factories.namespace()
    client = APIClient()
    client.force_authenticate(people.person("chief", "admin"))
    return client


def test_there_are_thirty() -> None:
    assert len(BODIES) + len(QUERIES) + len(FLAGS) >= 30


@pytest.mark.parametrize(("path", "body", "field", "meant"), BODIES)
def test_a_typo_in_a_body_is_refused(
    chief: APIClient, path: str, body: dict[str, Any], field: str, meant: str
) -> None:
    before = PolicyRevision.objects.count()
    answer = chief.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")
    assert answer.status_code == 422, answer.content
    [error] = answer.json()["errors"][field]
    assert f"did you mean {meant}" in error["message"]
    assert PolicyRevision.objects.count() == before


@pytest.mark.parametrize(("method", "path", "parameter", "meant"), QUERIES)
def test_a_typo_in_a_query_is_refused(
    chief: APIClient, method: str, path: str, parameter: str, meant: str
) -> None:
    before = PolicyRevision.objects.count()
    body = json.dumps(QUOTA) if method == "post" else ""
    answer = chief.generic(method.upper(), f"/api/v1/{path}", body, "application/json")
    assert answer.status_code == 400, answer.content
    [error] = answer.json()["errors"][parameter]
    assert meant in error["message"]
    assert PolicyRevision.objects.count() == before


@pytest.mark.parametrize("given", ["3", "'3'", '"3', "W/3", ""])
def test_a_version_that_is_none_is_refused(chief: APIClient, given: str) -> None:
    answer = chief.delete("/api/v1/clusters/prod/?confirm=prod", headers={"if-match": given})
    assert (answer.status_code, [*answer.json()["errors"]]) == (400, ["If-Match"])


@pytest.mark.parametrize(("words", "flag", "meant"), FLAGS)
def test_a_typo_in_a_flag_is_refused(
    capsys: pytest.CaptureFixture[str], words: str, flag: str, meant: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", *words.split()]).execute()
    assert ended.value.code == 2
    assert f"unrecognized arguments: {flag}" in (shown := capsys.readouterr().err)
    assert f"did you mean {meant}?" in shown
