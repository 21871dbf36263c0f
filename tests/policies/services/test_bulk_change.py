"""Many changed policies stored at once are as if each was saved by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies import services
from policies.models import PolicyRevision, QuotaUsage, ResourceQuota
from tests import factories

if TYPE_CHECKING:
    from tests.builders import Manifest

pytestmark = pytest.mark.django_db
SCOPES: dict[str, Any] = {
    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
}
BEFORE: list[dict[str, Any]] = [
    {"hard": {"pods": "10", "requests.cpu": "4"}},
    {"hard": {"pods": "10"}, "scopeSelector": SCOPES},
    {"hard": {"requests.memory": "3", "pods": "1"}, "scopes": ["NotTerminating"]},
]
AFTER: list[dict[str, Any]] = [
    {"hard": {"requests.cpu": "5", "secrets": "1", "pods": "10"}},
    {"hard": {"pods": "11"}},
    {"hard": {"pods": "1"}, "scopeSelector": SCOPES, "scopes": ["NotTerminating"]},
]
USED = {"pods": "3", "requests.cpu": "500m", "secrets": "2"}


def manifests(specs: list[dict[str, Any]]) -> list[Manifest]:
    quotas = [
        factories.manifest("ResourceQuota", spec, name=f"q{number}", namespace="team")
        for number, spec in enumerate(specs)
    ]
    limits = {"limits": [{"type": "Pod", "max": {"cpu": str(len(specs[0]["hard"]))}}]}
    return [*quotas, factories.manifest("LimitRange", limits, name="lr", namespace="team")]


def world(cluster: str) -> None:
    for manifest in manifests(BEFORE):
        given = {**manifest, "status": {"used": USED}} if "hard" in manifest["spec"] else manifest
        factories.apply(given, in_cluster=cluster)


def left(cluster: str) -> Any:
    quotas = ResourceQuota.objects.filter(namespace__cluster__name=cluster).order_by("name")
    revisions = PolicyRevision.objects.filter(cluster=cluster, namespace="team").order_by(
        "kind", "name", "number"
    )
    return (
        [
            (
                quota.to_manifest(), quota.revision, quota.uncounted,
                QuotaUsage.objects.get(quota=quota).used,
                [(row.resource, str(row.hard)) for row in quota.rows.order_by("id")],
            )
            for quota in quotas
        ],
        list(revisions.values_list("kind", "name", "number", "action", "before", "after")),
    )  # fmt: skip


def change_at_once(cluster: str, specs: list[dict[str, Any]]) -> None:
    owner = factories.cluster(cluster)
    wanted = manifests(specs)
    previews = services.preview_many(cluster=owner, manifests=wanted)
    pairs = list(zip(previews, wanted, strict=True))
    services.store_previews(cluster=owner, previews=pairs, user="ann", reason="more")


def test_many_changes_leave_what_each_would_leave_by_itself() -> None:
    for cluster in ("one", "many"):
        world(cluster)
    for manifest in manifests(AFTER):
        services.apply_manifest(
            cluster=factories.cluster("one"), manifest=manifest, user="ann", reason="more"
        )
    change_at_once("many", AFTER)
    assert left("many") == left("one")
    assert left("many")[0][0][3] == {"requests.cpu": "500m", "secrets": "2", "pods": "3"}


def test_rows_of_names_that_stay_keep_their_ids() -> None:
    world("many")
    before = dict(ResourceQuota.objects.get(name="q0").rows.values_list("resource", "id"))
    change_at_once("many", AFTER)
    after = dict(ResourceQuota.objects.get(name="q0").rows.values_list("resource", "id"))
    assert {name: after[name] for name in before} == before


def test_statements_grow_by_one_for_each_policy() -> None:
    counts = []
    for number in (2, 12):
        name = f"c{number}"
        factories.namespace("team", in_cluster=name)
        specs = [{"hard": {"pods": "1"}} for _ in range(number)]
        change_at_once(name, specs)
        with CaptureQueriesContext(connection) as asked:
            change_at_once(name, [{"hard": {"pods": "2"}} for _ in range(number)])
        counts.append(len(asked))
    assert counts[1] - counts[0] <= 10
