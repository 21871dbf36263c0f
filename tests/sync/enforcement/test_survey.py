"""Who enforces what is told from what the portal knows; each gap comes with what mends it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from policies import services
from policies.models import ResourceQuota
from sync.enforcement.survey import survey
from sync.models import ClusterConnection, SyncState, WebhookHealth
from sync.passes import resolution
from tests import factories
from tests.sync.enforcement import world

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
RANGE = {"type": "Pod", "max": {"cpu": "1"}}
REJECT = {"policyPredicate": {}, "policyAction": {"reject": True}}


def who(name: str = "prod") -> dict[str, str]:
    """The enforcer by namespace and kind, with the reason for nobody."""
    return {
        f"{each.namespace} {each.kind}": f"{each.enforcer} {each.because}".strip()
        for each in survey(name).holdings
    }


def missing(name: str = "prod") -> list[str]:
    return [gap.code.value for gap in survey(name).gaps]


def policies() -> Cluster:
    cluster = world.complete()
    factories.limit_range(RANGE)
    world.quota({"pods": "9"})
    factories.metadata_policy(REJECT)
    return cluster


def test_the_portal_enforces_all_kinds_where_the_authority_is_its_own() -> None:
    policies()
    kinds = ("LimitRange", "ResourceQuota", "MetadataPolicy")
    assert who() == {f"team {kind}": "portal" for kind in kinds}
    assert {each.is_proven for each in survey("prod").holdings} == {True}
    assert (missing(), survey("prod").to_json()["isComplete"]) == ([], True)


def test_the_plugins_enforce_what_the_cluster_has_and_never_metadata_policies() -> None:
    cluster = policies()
    world.native(cluster, ("LimitRange", "team", "lr"), ("ResourceQuota", "team", "rq"))
    assert who() == {
        "team LimitRange": "plugin",
        "team ResourceQuota": "plugin",
        "team MetadataPolicy": "portal",
    }
    assert missing() == []


def test_a_namespace_is_the_portals_until_the_cluster_has_all_of_its_policies() -> None:
    cluster = policies()
    world.native(cluster, ("LimitRange", "team", "lr"))
    assert who()["team LimitRange"] == "portal"
    [gap] = survey("prod").gaps
    assert (gap.code.value, gap.namespace) == ("ownership", "team")
    assert gap.command == "python manage.py cluster_ownership prod take --namespace team"
    resolution.take_ownership(cluster, "ada", namespace="team")
    assert missing() == ["pending"]


@pytest.mark.parametrize("authority", ["portal", "native"])
def test_policies_that_only_warn_are_enforced_by_the_plugins_alone(authority: str) -> None:
    cluster = world.complete()
    annotations = {"policy.gatehouse.dev/enforcement": "warn"}
    factories.limit_range(RANGE, annotations=annotations)
    if authority == "native":
        world.native(cluster, ("LimitRange", "team", "lr"))
    # The plugin knows no such annotation.
    expected = {"portal": "nobody only-warns", "native": "plugin"}
    assert who() == {"team LimitRange": expected[authority]}


def test_webhooks_that_fail_open_leave_the_plugins_alone_at_work() -> None:
    cluster = policies()
    world.native(cluster, ("LimitRange", "team", "lr"), ("ResourceQuota", "team", "rq"))
    WebhookHealth.objects.update(canary_refused=False)
    assert who()["team MetadataPolicy"] == "nobody webhook"
    assert who()["team LimitRange"] == "plugin"
    [gap] = survey("prod").gaps
    assert (gap.code.value, gap.is_open) == ("webhook", True)
    assert "cluster_manifests prod" in gap.command


def test_what_no_canary_has_shown_is_not_proven() -> None:
    policies()
    WebhookHealth.objects.update(checked=timezone.now() - dt.timedelta(hours=1))
    assert {each.is_proven for each in survey("prod").holdings} == {False}
    [gap] = survey("prod").gaps
    assert (gap.code.value, gap.is_open) == ("webhook", False)
    assert gap.command == "python manage.py cluster_enforcement prod --check"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"configuration": world.MISSING, "canary_refused": None}, True),
        ({"configuration": {**world.OK, "x": "changed: rules"}}, False),
        ({"mutating_asked": False}, False),
    ],
)
def test_webhooks_that_are_not_as_installed(fields: dict[str, Any], *, expected: bool) -> None:
    policies()
    WebhookHealth.objects.update(**fields)
    gaps = survey("prod").gaps
    assert {gap.code.value for gap in gaps} == {"webhook"}
    assert any(gap.is_open for gap in gaps) is expected
    assert {gap.command.split()[2] for gap in gaps} == {"cluster_manifests"}


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"state": "unauthorized"}, "connect_cluster prod --kubeconfig FILE"),
        ({"state": "untrusted"}, "connect_cluster prod --kubeconfig FILE"),
        ({"state": "forbidden"}, "cluster_manifests prod"),
        ({"state": "unreachable"}, "sync prod --follow"),
        ({"state": "new"}, "sync prod --import --follow"),
    ],
)
def test_a_connection_that_does_not_work_has_its_remedy(
    fields: dict[str, Any], command: str
) -> None:
    policies()
    ClusterConnection.objects.update(**fields)
    [gap] = survey("prod").gaps
    assert (gap.code.value, command in gap.command, bool(gap.words)) == ("connection", True, True)


def test_a_paused_sync_needs_no_follower() -> None:
    policies()
    ClusterConnection.objects.update(is_paused=True)
    [gap] = survey("prod").gaps
    assert (gap.remedy.value, gap.command) == ("resume", "python manage.py sync prod --resume")


def test_a_missing_right_names_the_quotas_that_are_not_counted() -> None:
    policies()
    world.quota({"count/deployments.apps": "1"}, "apps")
    world.quota({"secrets": "1"}, "other", "other")
    world.quota({"secrets": "1", "resourcequotas": "9"}, "keys")
    lacking = ["watch deployments.apps", "list secrets in namespace team", "patch resourcequotas"]
    ClusterConnection.objects.update(missing_permissions=lacking)
    words = [gap.words for gap in survey("prod").gaps]
    assert "deployments.apps are not counted reliably in quota team/apps" in words[0]
    assert "secrets are not counted reliably in quota team/keys." in words[1]
    assert words[2].endswith("may not patch resourcequotas.")
    assert missing() == ["right"] * 3


def test_a_cluster_that_was_never_read_is_imported_first() -> None:
    policies()
    SyncState.objects.update(last_success=None)
    assert missing() == ["import"]


@pytest.mark.parametrize("age", [None, 11])
def test_a_follower_counts_while_its_heartbeat_is_young(age: int | None) -> None:
    cluster = policies()
    old = None if age is None else timezone.now() - dt.timedelta(seconds=age)
    cluster.follower.heartbeat, cluster.follower.problem = old, "pods: 403"
    cluster.follower.save()
    [gap] = survey("prod").gaps
    assert (gap.code.value, gap.command) == ("follower", "python manage.py follow")
    assert "pods: 403" in gap.words


def test_namespaces_that_the_webhooks_leave_out_are_nobodys() -> None:
    cluster = policies()
    factories.limit_range(RANGE, namespace="kube-system")
    factories.limit_range(RANGE, namespace="gatehouse")
    assert who()["kube-system LimitRange"] == who()["gatehouse LimitRange"] == "nobody left-out"
    assert missing() == ["left-out", "left-out"]
    cluster.covers_kube_system = True
    services.save_cluster(cluster=cluster, user="root")
    assert who()["kube-system LimitRange"] == "portal"


def test_excluded_namespaces_are_nobodys_until_they_are_covered_again() -> None:
    cluster = policies()
    factories.limit_range(RANGE, namespace="ci")
    services.set_excluded_namespaces(cluster=cluster, names=["ci"], user="root")
    assert (who()["ci LimitRange"], missing()) == ("nobody left-out", ["left-out"])
    [gap] = survey("prod").gaps
    assert (gap.namespace, gap.is_open) == ("ci", True)
    assert "cluster_manifests" in gap.command
    services.set_excluded_namespaces(cluster=cluster, names=[], user="root")
    assert (who()["ci LimitRange"], missing()) == ("portal", [])


def test_a_namespace_that_is_covered_again_is_nobodys_until_the_webhooks_are_installed() -> None:
    policies()
    factories.limit_range(RANGE, namespace="ci")
    WebhookHealth.objects.update(left_out=["ci", "gatehouse", "kube-system"])
    assert (who()["ci LimitRange"], who()["team LimitRange"]) == ("nobody left-out", "portal")
    [gap] = survey("prod").gaps
    assert (gap.code, gap.namespace, gap.is_open) == ("left-out", "ci", True)
    assert "The settings cover it: install the webhooks again." in gap.words
    assert "cluster_manifests" in gap.command
    WebhookHealth.objects.update(left_out=["gatehouse", "kube-system"])
    assert (who()["ci LimitRange"], missing()) == ("portal", [])


def test_the_plugins_enforce_in_an_excluded_namespace_but_no_metadata_policy() -> None:
    cluster = policies()
    world.native(cluster, ("LimitRange", "team", "lr"), ("ResourceQuota", "team", "rq"))
    services.set_excluded_namespaces(cluster=cluster, names=["team"], user="root")
    assert who() == {
        "team LimitRange": "plugin",
        "team ResourceQuota": "plugin",
        "team MetadataPolicy": "nobody left-out",
    }


def test_quotas_that_wait_for_a_count_and_objects_that_differ_are_named() -> None:
    cluster = policies()
    ResourceQuota.objects.update(uncounted=["pods"])
    world.both_sides(cluster, "drifted")
    found = survey("prod").gaps
    assert [gap.code.value for gap in found] == ["difference", "uncounted"]
    assert "the portal's side counts" in found[0].words
    world.native(cluster, ("LimitRange", "team", "lr"), ("ResourceQuota", "team", "rq"))
    assert "the cluster's side counts" in survey("prod").gaps[0].words


def test_whether_plugins_are_on_is_said_to_be_invisible_until_one_is_seen() -> None:
    cluster = policies()
    assert "expected to be off" in survey("prod").unseen[0]
    seen = 'pods "gatehouse-canary" is forbidden: exceeded quota: q, requested: pods=1'
    WebhookHealth.objects.update(canary_message=seen)
    assert (missing(), survey("prod").unseen) == (["plugin"], ())
    world.native(cluster, ("LimitRange", "team", "lr"), ("ResourceQuota", "team", "rq"))
    assert missing() == []
    proven = {each.kind: each.is_proven for each in survey("prod").holdings}
    assert proven == {"LimitRange": False, "ResourceQuota": True, "MetadataPolicy": True}


def test_a_cluster_without_policies_has_no_holdings() -> None:
    factories.cluster()
    assert who() == {}
    assert missing() == ["connection", "webhook"]


def test_the_number_of_queries_does_not_grow_with_the_policies(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    cluster = policies()
    world.native(cluster)
    for number in range(12):
        factories.limit_range(RANGE, namespace=f"n{number}")
        world.quota({"pods": "1"}, name="q", namespace=f"n{number}")
    with django_assert_num_queries(10):
        found = survey("prod")
    assert len(found.holdings) == 27
    part = found.of_namespace("n1")
    assert ({each.namespace for each in part.holdings}, len(part.gaps)) == ({"n1"}, 1)
