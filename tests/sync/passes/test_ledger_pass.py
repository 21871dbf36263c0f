"""The ledger after a look at the cluster: what is there is charged, and nothing else for long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from engine.request import Operation
from policies import services
from policies.models import Charge, LedgerPass, QuotaUsage
from sync.errors import ForbiddenError, UnreachableError
from sync.inventory import usage_comparison
from sync.models import ClusterAlert, SyncState, UsageComparison
from sync.passes import ledger_pass
from sync.runs import leases
from tests import factories
from tests.builders import request
from tests.charges import admit
from tests.sync.pretended import Manifest, PretendedCluster, live_pod, native_quota

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(minutes=10)


@pytest.fixture
def there() -> PretendedCluster:
    return PretendedCluster()


def look(there: PretendedCluster) -> dict[str, int]:
    found = ledger_pass.compare_ledger(factories.cluster(), there, None)  # type: ignore[arg-type]
    return {name: count for name, count in found.items() if count}


def let_in(*pods: Manifest) -> None:
    for each in pods:
        assert admit(request(each, namespace="team")) == [True]


def age(by: timedelta = LONG_AGO, **which: Any) -> None:
    """Have charges be older than they are."""
    Charge.objects.filter(**which).update(
        reserved_at=F("reserved_at") - by, created=F("created") - by, updated=F("updated") - by
    )


def used(resource: str = "pods", quota: str = "rq") -> str:
    return str(QuotaUsage.objects.get(quota__name=quota).used[resource])


def test_what_is_seen_is_confirmed(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    let_in(there.put(live_pod("a")))
    assert look(there) == {"confirmed": 1}
    assert Charge.objects.get().state == "confirmed"
    assert look(there) == {}
    assert used() == "1"


def test_what_was_refused_elsewhere_is_given_back_when_its_lease_is_over(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"pods": "9"})
    there.put(live_pod("other"))
    let_in(live_pod("lost"))
    look(there)
    assert used() == "2"
    age(object_name="lost")
    assert look(there) == {"released": 1}
    assert used() == "1"


@pytest.mark.parametrize("name", ["there", "lost"])
def test_who_has_lost_the_lease_neither_confirms_nor_gives_back(
    name: str, there: PretendedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.resource_quota({"pods": "9"})
    let_in(there.put(live_pod("there")) if name == "there" else live_pod("lost"))
    age()
    monkeypatch.setattr(leases.Lease, "renew", lambda _: None)  # it ends after the last renewal
    cluster = factories.cluster()
    with leases.hold(cluster, 60) as lease:
        SyncState.objects.update(epoch=F("epoch") + 1)
        with pytest.raises(leases.LostLeaseError):
            ledger_pass.compare_ledger(cluster, there, lease)  # type: ignore[arg-type]
    assert Charge.objects.get().state == "reserved"


def test_nothing_is_given_back_without_a_list(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    let_in(live_pod("lost"))
    age()
    there.failing["Pod"] = UnreachableError("no route")
    with pytest.raises(UnreachableError):
        look(there)
    assert used() == "1"


def test_what_is_gone_is_given_back_at_once(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    pods = [there.put(live_pod(name)) for name in "abc"]
    let_in(*pods)
    look(there)
    there.take(pods[0])
    assert look(there) == {"released": 1}
    assert used() == "2"


def test_what_is_older_than_the_portal_is_charged_and_its_opening_balance_goes(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"pods": "9", "cpu": "9"}, used={"pods": "3", "cpu": "2"})
    for name in "ab":
        there.put(live_pod(name, cpu="500m"))
    assert look(there) == {"added": 2}
    assert (used(), used("cpu")) == ("2", "1")
    assert look(there) == {}


def test_what_uses_more_than_it_is_charged_is_charged_more_at_once(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"cpu": "9"})
    pod = there.put(live_pod("a", cpu="1"))
    let_in(pod)
    there.put(live_pod("a", cpu="2") | {"metadata": pod["metadata"]})
    assert look(there) == {"confirmed": 1, "corrected": 1}
    assert used("cpu") == "2"


def test_what_uses_less_is_lowered_only_when_no_update_can_be_on_its_way(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"cpu": "9"})
    small = there.put(live_pod("a", cpu="1"))
    let_in(small)
    look(there)
    resized = live_pod("a", cpu="3") | {"metadata": small["metadata"]}
    resize = {"operation": Operation.UPDATE, "sub_resource": "resize", "old_object": small}
    assert admit(request(resized, namespace="team", **resize)) == [True]
    assert look(there) == {}
    assert used("cpu") == "3"
    age(object_uid=small["metadata"]["uid"])
    assert look(there) == {"corrected": 1}
    assert used("cpu") == "1"


def test_pod_that_has_ended_gives_back_at_once_what_only_running_pods_use(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"pods": "9", "count/pods": "9"})
    pod = there.put(live_pod("a"))
    let_in(pod)
    look(there)
    pod["status"]["phase"] = "Succeeded"
    look(there)
    assert (used(), used("count/pods")) == ("0", "1")


def test_name_that_a_quota_newly_bounds_is_charged_for_what_is_there(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"pods": "9"})
    let_in(there.put(live_pod("a", cpu="1")))
    factories.resource_quota({"pods": "9", "cpu": "9"})
    look(there)
    assert used("cpu") == "1"


def test_claims_and_services_are_looked_at_where_a_quota_counts_them(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"services": "9", "services.nodeports": "9"})
    service = {
        "metadata": {"name": "s", "namespace": "team"},
        "spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]},
    }
    there.put(service, "Service")
    assert look(there) == {"added": 1}
    assert used("services.nodeports") == "2"
    assert sorted(set(there.listed)) == ["ResourceQuota", "Service"]


def test_forbidden_resource_is_left_out_and_reported(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9", "services": "9"})
    let_in(live_pod("lost"))
    age()
    there.failing["Pod"] = ForbiddenError("pods is forbidden", code=403)
    assert look(there) == {}
    assert used() == "1"
    assert ClusterAlert.objects.get(resolved=None).subject == "pods"
    del there.failing["Pod"]
    look(there)
    assert not ClusterAlert.objects.filter(resolved=None).exists()


@pytest.mark.parametrize("left", [0, 2])
def test_list_that_lacks_most_objects_is_believed_the_second_time(
    there: PretendedCluster, left: int
) -> None:
    factories.resource_quota({"pods": "50"})
    pods = [there.put(live_pod(f"p{n}")) for n in range(14)]
    look(there)
    for each in pods[left:]:
        there.take(each)
    assert look(there) == {}
    assert used() == "14"
    assert LedgerPass.objects.get(resource="pods").doubted is not None
    assert look(there) == {"released": 14 - left}
    assert used() == str(left)


def test_doubt_is_over_when_the_objects_are_back(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "50"})
    pods = [there.put(live_pod(f"p{n}")) for n in range(14)]
    look(there)
    for each in pods:
        there.take(each)
    look(there)
    for each in pods:
        there.put(each)
    assert look(there) == {}
    assert LedgerPass.objects.get(resource="pods").doubted is None


def test_object_that_cannot_be_read_keeps_its_charge(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    pod = there.put(live_pod("a"))
    let_in(pod)
    look(there)
    age()
    pod["spec"]["containers"] = "none"
    assert look(there) == {}
    assert used() == "1"


def test_quota_that_only_watches_is_not_charged(there: PretendedCluster) -> None:
    document = factories.manifest(
        "ResourceQuota",
        {"hard": {"pods": "9"}},
        name="rq",
        annotations={"policy.gatehouse.dev/enforcement": "audit"},
    )
    factories.apply(document)
    there.put(live_pod("a"))
    assert look(there) == {}


def test_another_clusters_ledger_is_left_alone(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    let_in(live_pod("a"))
    age()
    factories.cluster("other")
    other = factories.manifest("ResourceQuota", {"hard": {"pods": "9"}}, name="rq")
    factories.apply(other, in_cluster="other")
    look(there)
    assert Charge.objects.filter(cluster__name="other").count() == 0
    ledger_pass.compare_ledger(factories.cluster("other"), there, None)  # type: ignore[arg-type]
    assert Charge.objects.get(cluster__name="prod").state == "released"


# The cluster's own figures


def difference() -> dict[str, Any]:
    [found] = UsageComparison.objects.get().differences
    return dict(found)


def test_figures_that_agree_are_kept_without_a_difference(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    there.put(native_quota({"pods": "9"}, {"pods": "1"}), "ResourceQuota")
    there.put(live_pod("a"))
    look(there)
    row = UsageComparison.objects.get()
    assert (row.observed, row.ledger, row.differences) == ({"pods": "1"}, {"pods": "1"}, [])
    assert row.since is None


def test_difference_is_explained_by_what_was_admitted_and_is_not_there(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"pods": "9"})
    there.put(native_quota({"pods": "9"}, {"pods": "0"}), "ResourceQuota")
    let_in(live_pod("lost"))
    look(there)
    found = difference()
    assert (found["cluster"], found["ledger"], found["unexplained"]) == ("0", "1", "")
    [one] = found["objects"]
    assert (one["name"], one["side"], one["why"]) == ("lost", "ledger", usage_comparison.NOT_SEEN)


def test_difference_that_no_object_explains_is_reported(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    there.put(native_quota({"pods": "9"}, {"pods": "3"}), "ResourceQuota")
    there.put(live_pod("a"))
    look(there)
    assert difference()["unexplained"] == "2"
    since = UsageComparison.objects.get().since
    look(there)
    assert UsageComparison.objects.get().since == since


def test_native_figure_counts_where_the_cluster_enforces(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    cluster = factories.cluster()
    services.note_native(cluster=cluster, native=[("ResourceQuota", "team", "rq")], user="sync")
    services.set_authority(cluster=cluster, authority="native", user="root")
    there.put(native_quota({"pods": "9"}, {"pods": "3"}), "ResourceQuota")
    there.put(live_pod("a"))
    let_in(live_pod("new"))
    look(there)
    assert used() == "4"
    assert [one["name"] for one in difference()["objects"]] == ["new"]
    assert difference()["unexplained"] == ""
    quota = there.put(native_quota({"pods": "9"}, {"pods": "1"}), "ResourceQuota")
    there.objects["ResourceQuota"] = {"only": quota}
    look(there)
    assert used() == "2"


def test_comparison_goes_with_the_quota(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    quota = there.put(native_quota({"pods": "9"}, {"pods": "0"}), "ResourceQuota")
    look(there)
    assert UsageComparison.objects.count() == 1
    there.take(quota, "ResourceQuota")
    look(there)
    assert UsageComparison.objects.count() == 0


# What we wrote into the cluster ourselves


def by_us(quota: Manifest, *names: str) -> Manifest:
    """The quota, whose used amounts of these names the portal wrote."""
    used = {f"f:{name}": {} for name in names}
    entry = {"manager": "gatehouse", "subresource": "status", "operation": "Update"}
    entry["fieldsV1"] = {"f:status": {"f:used": used}}  # type: ignore[assignment]
    quota["metadata"]["managedFields"] = [entry]
    return quota


def test_our_own_figure_is_not_compared_with_itself(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9", "services": "9"})
    figures = native_quota({"pods": "9", "services": "9"}, {"pods": "7", "services": "2"})
    there.put(by_us(figures, "pods"), "ResourceQuota")
    there.put(live_pod("a"))
    look(there)
    row = UsageComparison.objects.get()
    assert (row.observed, [one["resource"] for one in row.differences]) == (
        {"services": "2"},
        ["services"],
    )
    by_us(figures, "pods", "services")
    look(there)
    assert UsageComparison.objects.count() == 0


def test_our_own_figure_does_not_count_as_the_clusters(there: PretendedCluster) -> None:
    factories.resource_quota({"pods": "9"})
    cluster = factories.cluster()
    services.note_native(cluster=cluster, native=[("ResourceQuota", "team", "rq")], user="sync")
    services.set_authority(cluster=cluster, authority="native", user="root")
    figures = there.put(native_quota({"pods": "9"}, {"pods": "5"}), "ResourceQuota")
    by_us(figures, "pods")
    there.put(live_pod("a"))
    look(there)
    assert used() == "1"
    # Once the controller has written the amount, it is the cluster's, and decides.
    figures["metadata"]["managedFields"] = []
    look(there)
    assert used() == "5"
