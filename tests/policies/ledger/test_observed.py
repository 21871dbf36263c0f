"""What a watch tells, taken into the ledger: seen, grown, shrunk, gone, and never made."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from engine.resource_list import parse
from policies import services
from policies.db.clock import read_clock
from policies.ledger.observed import (
    SeenObject,
    due_orphans,
    release_missing,
    take_in,
    with_overdue,
)
from policies.ledger.recount import recount
from policies.models import Charge, Cluster, QuotaUsage, ResourceQuota
from tests import builders, charges, factories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.ledger.live_objects import LedgerChanges

pytestmark = pytest.mark.django_db
ONE = {"pods": "1", "requests.cpu": "1"}
TWO = {"pods": "1", "requests.cpu": "2"}
LONG_AGO = 1000


@pytest.fixture(autouse=True)
def _ledger_is_even(db: None) -> Iterator[None]:
    factories.resource_quota({"pods": "9", "requests.cpu": "9"})
    yield
    assert recount("prod") == []


def admit(*uids: str, cpu: str = "1", seconds_ago: int = 0, namespace: str = "team") -> None:
    """Reserve pods, as if that long ago."""
    for uid in uids:
        made = builders.pod(builders.container(requests={"cpu": cpu}), uid=uid, namespace=namespace)
        request = builders.request(made, namespace=namespace, uid=uid)
        assert charges.admit(request) == [True]
    moment = read_clock() - timedelta(seconds=seconds_ago)
    Charge.objects.filter(object_uid__in=uids).update(reserved_at=moment, updated=moment)


def seen(uid: str, amounts: dict[str, str] | None = None, **more: Any) -> SeenObject:
    """A pod of the namespace as a watch shows it; without amounts no quota counts it."""
    quota = ResourceQuota.objects.get(name="rq")
    counted = {quota.uid: parse(amounts)} if amounts else {}
    return SeenObject(**{"uid": uid, "name": "p", "namespace": "team", "counted": counted, **more})


def gone(uid: str, **more: Any) -> SeenObject:
    return seen(uid, is_gone=True, **more)


def take(*events: SeenObject, seconds_ago: int = 0, **more: Any) -> LedgerChanges:
    received = read_clock() - timedelta(seconds=seconds_ago)
    return take_in(cluster_id(), "pods", events, received=received, **more)


def cluster_id() -> int:
    return Cluster.objects.get(name="prod").pk


def states() -> dict[str, str]:
    return dict(Charge.objects.exclude(object_uid="").values_list("object_uid", "state"))


def used() -> dict[str, str]:
    return dict(QuotaUsage.objects.get(quota__name="rq").used)


def test_what_is_seen_is_confirmed_and_seen_again_it_is_no_news() -> None:
    admit("u1")
    assert take(seen("u1", ONE)).confirmed == 1
    assert (states(), used()) == ({"u1": "confirmed"}, ONE)
    with CaptureQueriesContext(connection) as queries:
        again = take(seen("u1", ONE))
    assert (again.confirmed, again.corrected, again.recheck) == (0, 0, {})
    assert not [query for query in queries if query["sql"].startswith(("UPDATE", "INSERT"))]


def test_what_was_admitted_elsewhere_is_charged() -> None:
    assert take(seen("u1", ONE), seen("u2", TWO)).added == 2
    assert (states(), used()["requests.cpu"]) == ({"u1": "confirmed", "u2": "confirmed"}, "3")


def test_of_several_events_the_last_counts_and_nothing_follows_a_deletion() -> None:
    admit("u1", "u2")
    changes = take(seen("u1", ONE), seen("u1", TWO), gone("u2"), seen("u2", ONE))
    assert (changes.corrected, changes.released) == (1, 1)
    assert (states(), used()) == ({"u1": "confirmed", "u2": "released"}, TWO)


def test_a_deletion_is_believed_at_once_whatever_was_admitted() -> None:
    admit("u1")
    admit("u2", seconds_ago=LONG_AGO)
    assert take(gone("u1"), gone("u2"), gone("stranger"), seconds_ago=5).released == 2
    assert used()["pods"] == "0"
    assert take(gone("u1")).released == 0


def test_a_recreated_name_is_another_object() -> None:
    admit("u1")
    take(gone("u1"), seen("u2", ONE))
    assert (states(), used()) == ({"u1": "released", "u2": "confirmed"}, ONE)


def test_growth_counts_at_once() -> None:
    admit("u1")
    assert take(seen("u1", TWO)).corrected == 1
    assert used() == TWO


def test_a_charge_shrinks_only_when_no_update_can_be_under_way() -> None:
    admit("u1", cpu="2", seconds_ago=30)
    changes = take(seen("u1", ONE))
    assert (used(), states()) == (TWO, {"u1": "confirmed"})
    assert list(changes.recheck) == ["u1"]
    assert changes.recheck["u1"] > read_clock()
    Charge.objects.update(updated=read_clock() - timedelta(seconds=70))
    assert take(seen("u1", ONE), seconds_ago=20).recheck.keys() == {"u1"}
    assert used() == TWO
    changes = take(seen("u1", ONE))
    assert (changes.corrected, changes.recheck, used()) == (1, {}, ONE)


def test_what_has_ended_is_given_back_at_once() -> None:
    admit("u1")
    take(seen("u1", ONE))
    changes = take(seen("u1", is_final=True), seconds_ago=10)
    assert (changes.corrected, changes.recheck, used()["pods"]) == (1, {}, "0")
    assert states() == {"u1": "released"}


def test_an_object_that_cannot_be_read_keeps_its_charge() -> None:
    admit("u1", seconds_ago=LONG_AGO)
    assert take(seen("u1", counted=None)).confirmed == 1
    assert (states(), used()) == ({"u1": "confirmed"}, ONE)


def test_names_that_no_quota_counts_now_stay_charged() -> None:
    admit("u1", cpu="2", seconds_ago=LONG_AGO)
    factories.resource_quota({"pods": "9"})
    take(seen("u1", {"pods": "1"}))
    assert Charge.objects.get().amounts == TWO
    factories.resource_quota({"pods": "9", "requests.cpu": "9"})
    assert used() == TWO


def test_policies_older_than_the_ledger_lower_nothing_that_they_do_not_know() -> None:
    admit("u1", seconds_ago=LONG_AGO)
    quota = ResourceQuota.objects.get()
    changes = take(seen("u1", {"pods": "1"}), names={quota.uid: ["pods"]})
    assert (changes.corrected, used()) == (0, ONE)
    changes = take(seen("u1", {"pods": "1"}), names={quota.uid: ["pods", "requests.cpu"]})
    assert changes.recheck.keys() == {"u1"}  # the confirmation looks like an update


def test_charges_of_a_deleted_quota_are_confirmed_and_released() -> None:
    admit("u1", "u2", seconds_ago=LONG_AGO)
    quota = ResourceQuota.objects.get()
    events = seen("u1", ONE), gone("u2")
    deleted = services.delete_policy(policy=quota, user="x").revision
    assert deleted is not None
    changes = take(*events)
    assert (changes.confirmed, changes.released, changes.added) == (1, 1, 0)
    services.restore_revision(revision=deleted, user="x")
    assert (states(), used()) == ({"u1": "confirmed", "u2": "released"}, ONE)


def test_each_namespace_with_news_has_its_own_guarded_transaction() -> None:
    factories.apply(
        factories.manifest("ResourceQuota", {"hard": {"pods": "2"}}, name="q", namespace="other")
    )
    admit("u1")
    admit("u2", namespace="other")
    begun: list[str] = []

    def guard() -> Any:
        begun.append("begun")
        return transaction.atomic()

    take(seen("u1", ONE), gone("u2", namespace="other"), guard=guard)
    assert len(begun) == 2
    take(seen("u1", ONE), gone("u2", namespace="other"), guard=guard)
    assert len(begun) == 2


def test_many_objects_are_taken_in_at_once() -> None:
    uids = [f"u{number}" for number in range(1201)]
    assert take(*(seen(uid, ONE) for uid in uids)).added == 1201
    assert used()["pods"] == "1201"
    assert take(*map(gone, uids)).released == 1201


def test_orphans_are_found_by_their_age() -> None:
    admit("u1", "u2", seconds_ago=11)
    admit("u3", seconds_ago=2)
    take(seen("u2", ONE))
    ten_seconds = timedelta(seconds=10)
    assert due_orphans(cluster_id(), older_than=ten_seconds) == {
        ("pods", "team"): frozenset({"u1"})
    }
    assert due_orphans(cluster_id() + 1, older_than=ten_seconds) == {}
    clusters = [cluster_id(), cluster_id() + 1]
    assert with_overdue(clusters, older_than=ten_seconds) == {cluster_id()}
    assert with_overdue(clusters, older_than=timedelta(seconds=12)) == set()
    assert with_overdue(clusters[1:], older_than=ten_seconds) == set()


@pytest.mark.parametrize(
    ("age", "present", "released"),
    [
        pytest.param(12, (), 1, id="missing"),
        pytest.param(12, ("u1",), 0, id="there"),
        pytest.param(8, (), 0, id="admitted shortly before the list"),
        pytest.param(-5, (), 0, id="admitted after the list"),
    ],
)
def test_what_is_missing_on_a_list_was_not_made(
    age: int, present: tuple[str, ...], released: int
) -> None:
    admit("u1", seconds_ago=age)
    found = release_missing(cluster_id(), "pods", "team", present, list_started=read_clock())
    assert (found, used()["pods"]) == (released, str(1 - released))


def test_a_list_of_one_kind_and_place_releases_no_other_and_nothing_that_was_seen() -> None:
    admit("u1", "u2", seconds_ago=LONG_AGO)
    take(seen("u1", ONE))
    now = read_clock()
    assert release_missing(cluster_id(), "services", "team", (), list_started=now) == 0
    assert release_missing(cluster_id(), "pods", "other", (), list_started=now) == 0
    assert release_missing(cluster_id(), "pods", "team", (), list_started=now) == 1
    assert states() == {"u1": "confirmed", "u2": "released"}
