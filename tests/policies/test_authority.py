"""Who enforces reaches every decision's policies: by the cluster's word, and by what it has."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.policy import Authority
from policies import services, snapshot
from policies.models import Cluster, PolicyRevision
from tests import factories

pytestmark = pytest.mark.django_db
POD = {"type": "Pod", "max": {"cpu": "1"}}
BOTH = [("LimitRange", "team", "lr"), ("ResourceQuota", "team", "rq")]


def make_native(*native: tuple[str, str, str]) -> list[str]:
    found = factories.cluster()
    return services.note_native(cluster=found, native=native, user="sync")


def set_authority(authority: str) -> None:
    services.set_authority(cluster=factories.cluster(), authority=authority, user="root")


def authority(namespace: str = "team") -> Authority:
    """As a decision sees it; reading the database anew gives the same."""
    found = snapshot.refresh().clusters["prod"].policy_set(namespace).authority
    assert snapshot.load("prod", namespace).authority is found
    return found


def test_cluster_is_the_portals_unless_it_says_otherwise() -> None:
    factories.limit_range(POD)
    assert authority() is Authority.PORTAL
    assert authority("nowhere") is Authority.PORTAL


def test_native_cluster_enforces_where_it_has_all_that_is_enforced() -> None:
    factories.limit_range(POD)
    factories.resource_quota({"pods": "1"})
    set_authority("native")
    assert authority() is Authority.PORTAL
    assert make_native(BOTH[0]) == []
    assert authority() is Authority.PORTAL
    assert make_native(*BOTH) == ["team"]
    assert authority() is Authority.NATIVE
    assert authority("nowhere") is Authority.NATIVE


def test_namespace_comes_back_to_the_portal_when_the_cluster_loses_a_policy() -> None:
    factories.limit_range(POD)
    set_authority("native")
    make_native(*BOTH)
    assert authority() is Authority.NATIVE
    assert make_native() == ["team"]
    assert authority() is Authority.PORTAL


def test_new_policy_makes_its_namespace_the_portals_until_the_cluster_has_it() -> None:
    factories.limit_range(POD)
    set_authority("native")
    make_native(*BOTH)
    factories.resource_quota({"pods": "1"})
    assert authority() is Authority.PORTAL


def test_policy_that_only_watches_keeps_no_namespace_back() -> None:
    watching = {"policy.gatehouse.dev/enforcement": "audit"}
    factories.limit_range(POD, annotations=watching)
    set_authority("native")
    assert authority() is Authority.NATIVE


def test_policy_edited_here_stays_native() -> None:
    factories.limit_range(POD)
    set_authority("native")
    make_native(*BOTH)
    factories.limit_range({"type": "Pod", "max": {"cpu": "2"}})
    assert authority() is Authority.NATIVE


def test_switching_reaches_namespaces_that_are_taken_over() -> None:
    factories.limit_range(POD)
    make_native(*BOTH)
    known = snapshot.refresh()
    set_authority("native")
    assert authority() is Authority.NATIVE
    set_authority("portal")
    assert authority() is Authority.PORTAL
    assert known.clusters["prod"].authority is Authority.PORTAL


def test_namespace_that_changes_hands_leaves_a_revision() -> None:
    factories.limit_range(POD)
    make_native(*BOTH)
    revision = PolicyRevision.objects.get(kind="NativePolicies")
    assert (revision.namespace, revision.user) == ("team", "sync")
    assert revision.before["spec"]["missing"] == ["LimitRange lr"]
    assert revision.after["spec"]["missing"] == []


def test_nothing_new_costs_two_reads_and_no_write() -> None:
    factories.limit_range(POD)
    cluster = factories.cluster()
    services.note_native(cluster=cluster, native=BOTH, user="sync")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        services.note_native(cluster=cluster, native=BOTH, user="sync")
    assert len(queries) == 2


def test_unknown_authority_is_refused() -> None:
    with pytest.raises(ValidationError):
        set_authority("nobody")
    assert Cluster.objects.get().authority == "portal"


def test_authority_is_part_of_the_clusters_history() -> None:
    set_authority("native")
    revision = PolicyRevision.objects.filter(kind="Cluster").latest("id")
    assert revision.after["spec"]["authority"] == "native"
