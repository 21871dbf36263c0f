"""Which statuses are due: those of our quotas that the cluster shows differently, by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services, snapshot
from policies.ledger.release import confirm
from policies.models import Cluster, LedgerPass, ResourceQuota
from sync.quota_status import StatusWrite, due_statuses
from tests import builders, charges, factories
from tests.sync.pretended import native_quota

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
Manifest = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_snapshot() -> None:
    snapshot.forget()


def live(hard: Manifest, used: Manifest | None = None, **metadata: Any) -> Manifest:
    """A quota as the API server gives it; without a status if nothing is used of it."""
    quota = native_quota(hard, used or {})
    quota["metadata"] |= {"resourceVersion": "7", **metadata}
    if used is None:
        quota["status"] = {}
    return quota


def due(*quotas: Manifest) -> list[StatusWrite]:
    by_place = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in quotas}
    return due_statuses(factories.cluster(), by_place)


def charge(name: str = "a", *, seen: bool = True) -> None:
    made = builders.pod(builders.container(requests={"cpu": "500m"}), name=name, uid=name)
    assert charges.admit(builders.request(made, namespace="team", uid=name)) == [True]
    if seen:
        confirm("prod", resource="pods", uid=name)


def not_counted(*names: str) -> None:
    ResourceQuota.objects.update(uncounted=list(names))
    snapshot.forget()


def test_the_status_is_the_limits_and_the_confirmed_amounts() -> None:
    factories.resource_quota({"pods": "9", "requests.cpu": "2"})
    charge()
    charge("b", seen=False)
    [write] = due(live({"pods": "9", "requests.cpu": "2"}))
    assert write.status == {
        "hard": {"pods": "9", "requests.cpu": "2"},
        "used": {"pods": "1", "requests.cpu": "500m"},
    }
    assert write.manifest["metadata"]["resourceVersion"] == write.resource_version == "7"
    assert (write.place, write.uid) == (("team", "rq"), write.manifest["metadata"]["uid"])


def test_the_rest_of_the_object_is_sent_as_it_is() -> None:
    factories.resource_quota({"pods": "9"})
    found = live({"pods": "9"}, labels={"a": "b"}, annotations={"c": "d"}, managedFields=[{}])
    [write] = due(found)
    assert write.manifest["metadata"]["labels"] == {"a": "b"}
    assert write.manifest["metadata"]["annotations"] == {"c": "d"}
    assert "managedFields" not in write.manifest["metadata"]
    assert write.manifest["spec"] == found["spec"]


@pytest.mark.parametrize(
    ("hard", "used"),
    [
        ({"pods": "9", "requests.storage": "1Gi"}, {"pods": "1", "requests.storage": "0"}),
        ({"pods": "9", "requests.storage": "1024Mi"}, {"pods": "1000m", "requests.storage": "0"}),
    ],
)
def test_equal_amounts_are_no_write_however_spelled(hard: Manifest, used: Manifest) -> None:
    factories.resource_quota({"pods": "9", "requests.storage": "1Gi"})
    charge()
    found = live({"pods": "9", "requests.storage": "1Gi"}, used)
    found["status"]["hard"] = hard
    assert due(found) == []


def test_what_was_written_is_not_due_again() -> None:
    factories.resource_quota(
        {"pods": "9", "requests.cpu": "1500500u", "limits.nvidia.com/gpu": "1"}
    )
    charge()
    [write] = due(live({"pods": "9", "requests.cpu": "1501m", "limits.nvidia.com/gpu": "1"}))
    assert write.status["used"] == {"pods": "1", "requests.cpu": "500m"}
    assert due(dict(write.manifest)) == []


def test_a_quota_without_limits_has_nothing_to_write() -> None:
    factories.resource_quota({})
    assert due(live({})) == []


@pytest.mark.parametrize(
    ("hard", "status"),
    [
        ({"pods": "9"}, {"hard": {"pods": "9"}, "used": {"pods": "3"}}),
        ({"pods": "9"}, {"hard": {"pods": "5"}, "used": {"pods": "0"}}),
        ({"pods": "9"}, {"hard": {"pods": "9"}}),
        ({"pods": "9"}, {"hard": {"pods": "9"}, "used": {"pods": "0", "services": "0"}}),
    ],
)
def test_each_difference_is_a_write(hard: Manifest, status: Manifest) -> None:
    factories.resource_quota({"pods": "9"})
    [write] = due({**live(hard), "status": status})
    assert write.status == {"hard": {"pods": "9"}, "used": {"pods": "0"}}


def test_a_new_quota_over_existing_objects_stays_unknown_until_they_are_counted() -> None:
    factories.resource_quota({"pods": "9", "requests.cpu": "2"})
    not_counted("pods")
    assert due(live({"pods": "9", "requests.cpu": "2"})) == []
    not_counted()
    assert len(due(live({"pods": "9", "requests.cpu": "2"}))) == 1


def test_a_limit_that_only_the_cluster_has_keeps_the_status_as_it_is() -> None:
    factories.resource_quota({"pods": "9"})
    assert due(live({"pods": "9", "services": "2"})) == []


def test_limits_that_differ_are_the_clusters() -> None:
    factories.resource_quota({"pods": "9", "services": "2"})
    [write] = due(live({"pods": "7"}))
    assert write.status == {"hard": {"pods": "7"}, "used": {"pods": "0"}}


def test_other_scopes_count_other_objects() -> None:
    factories.resource_quota({"pods": "9"}, scopes=["BestEffort"])
    assert due(live({"pods": "9"})) == []
    scoped = live({"pods": "9"})
    expression = {"scopeName": "BestEffort", "operator": "Exists"}
    scoped["spec"]["scopeSelector"] = {"matchExpressions": [expression]}
    assert len(due(scoped)) == 1


def test_quotas_and_places_that_we_do_not_have_are_left_alone() -> None:
    factories.resource_quota({"pods": "9"})
    assert due(live({"pods": "9"}, name="theirs"), live({"pods": "9"}, namespace="else")) == []
    assert due_statuses(Cluster(pk=0, name="unknown"), {("team", "rq"): live({"pods": "9"})}) == []


def test_under_native_authority_nothing_is_ever_written() -> None:
    factories.resource_quota({"pods": "9"})
    stale, changed = factories.cluster(), factories.cluster()
    changed.authority = "native"
    services.save_cluster(cluster=changed, user="me")
    # Nor where the portal still enforces because the cluster lacks a policy of the namespace.
    assert due_statuses(stale, {("team", "rq"): live({"pods": "9"})}) == []


def test_what_cannot_be_listed_keeps_the_clusters_amount() -> None:
    factories.resource_quota({"pods": "9", "secrets": "5"})
    charge()
    LedgerPass.objects.create(cluster=factories.cluster(), resource="secrets", problem="forbidden")
    [write] = due(live({"pods": "9", "secrets": "5"}, {"pods": "0", "secrets": "3"}))
    assert write.status["used"] == {"pods": "1", "secrets": "3"}
    [write] = due(live({"pods": "9", "secrets": "5"}))
    assert write.status["used"] == {"pods": "1"}


def test_a_live_quota_that_cannot_be_read_is_left_alone() -> None:
    factories.resource_quota({"pods": "9"})
    assert due(live({"pods": "many"})) == []


def test_as_many_statements_for_many_quotas_as_for_one(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    quotas = []
    for number in range(12):
        document = factories.manifest(
            "ResourceQuota", {"hard": {"pods": "9"}}, name="rq", namespace=f"team-{number}"
        )
        factories.apply(document)
        quotas.append(live({"pods": "9"}, namespace=f"team-{number}"))
    snapshot.refresh()
    cluster = factories.cluster()
    by_place = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in quotas}
    with django_assert_num_queries(3):
        assert len(due_statuses(cluster, by_place)) == len(quotas)
