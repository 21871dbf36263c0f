"""What becomes of a reservation: seen, gone, or never made; by the database's clock."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.quantity import Quantity
from policies import services
from policies.db.clock import read_clock
from policies.ledger.recount import recount
from policies.ledger.release import confirm, confirm_seen, release, release_orphans
from policies.models import Charge, QuotaUsage, ResourceQuota
from tests import builders, charges, factories

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _ledger_is_even(db: None) -> Iterator[None]:
    factories.resource_quota({"pods": "5"})
    yield
    assert recount("prod") == []


def reserve(*uids: str, seconds_ago: int = 0, namespace: str = "team") -> None:
    pods = [builders.pod(uid=uid, namespace=namespace) for uid in uids]
    requests = [
        builders.request(made, namespace=namespace, uid=uid)
        for made, uid in zip(pods, uids, strict=True)
    ]
    assert all(charges.admit(*requests))
    moment = read_clock() - timedelta(seconds=seconds_ago)
    Charge.objects.filter(object_uid__in=uids).update(reserved_at=moment)


def states() -> dict[str, str]:
    return dict(Charge.objects.values_list("object_uid", "state"))


def used(name: str = "rq") -> str:
    return str(QuotaUsage.objects.get(quota__name=name).used["pods"])


def give_back_orphans(*seen: str, list_age: int = 0) -> int:
    started = read_clock() - timedelta(seconds=list_age)
    return release_orphans("prod", list_started=started, seen=set(seen))


@pytest.mark.parametrize(
    ("age", "list_age", "seen", "is_released"),
    [
        pytest.param(130, 0, (), True, id="old, and missing on a fresh list"),
        pytest.param(130, 0, ("u1",), False, id="on the list"),
        pytest.param(130, 0, ("other",), True, id="only others on the list"),
        pytest.param(110, 0, (), False, id="not 120 s old"),
        pytest.param(130, 65, (), True, id="list began 65 s after it"),
        pytest.param(130, 75, (), False, id="list began 55 s after it"),
        pytest.param(130, 200, (), False, id="list began before it"),
        pytest.param(700, 600, (), True, id="a late list that began long after it"),
        pytest.param(650, 600, (), False, id="a late list that began soon after it"),
        pytest.param(110, -3600, (), False, id="a list from the future makes nothing older"),
    ],
)
def test_orphans(age: int, list_age: int, seen: tuple[str, ...], is_released: bool) -> None:  # noqa: FBT001 - a table
    reserve("u1", seconds_ago=age)
    assert give_back_orphans(*seen, list_age=list_age) == int(is_released)
    assert (states()["u1"], used()) == (("released", "0") if is_released else ("reserved", "1"))


def test_only_what_waits_can_be_an_orphan() -> None:
    reserve("u1", "u2", seconds_ago=1000)
    confirm("prod", resource="pods", uid="u1")
    assert give_back_orphans() == 1
    assert states() == {"u1": "confirmed", "u2": "released"}


def test_a_list_of_pods_says_nothing_about_other_resources_and_clusters() -> None:
    reserve("u1", seconds_ago=1000)
    Charge.objects.update(resource="services")
    assert give_back_orphans() == 0
    started = read_clock()
    factories.cluster("other")
    for cluster in ("other", "unknown"):
        found = release_orphans(cluster, list_started=started, seen=(), resource="services")
        assert found == 0
    assert release_orphans("prod", list_started=started, seen=(), resource="services") == 1


def test_an_orphan_that_was_asked_for_again_waits_anew() -> None:
    reserve("u1", seconds_ago=1000)
    assert charges.admit(
        builders.request(builders.pod(uid="u1", namespace="team"), namespace="team", uid="again")
    ) == [True]
    assert give_back_orphans() == 0


def test_an_orphan_that_comes_after_all_is_charged_again() -> None:
    reserve("u1", seconds_ago=1000)
    give_back_orphans()
    reserve("u1")
    assert (states(), used()) == ({"u1": "reserved"}, "1")


def test_orphans_of_many_namespaces_go_in_short_transactions() -> None:
    names = [f"n{number}" for number in range(3)]
    for name in names:
        factories.apply(
            factories.manifest("ResourceQuota", {"hard": {"pods": "2"}}, name=name, namespace=name)
        )
        reserve(f"u-{name}", seconds_ago=1000, namespace=name)
    with CaptureQueriesContext(connection) as found:
        assert give_back_orphans() == 3
    assert [used(name) for name in names] == ["0"] * 3
    assert sum("SAVEPOINT" in query["sql"][:9] for query in found) == 3


def test_what_a_list_shows_is_confirmed_in_bulk() -> None:
    reserve("u1", "u2", "u3")
    assert confirm_seen("prod", resource="pods", seen={"u1", "u3", "stranger"}) == 2
    assert states() == {"u1": "confirmed", "u2": "reserved", "u3": "confirmed"}
    assert confirm_seen("prod", resource="pods", seen={"u1"}) == 0
    assert used() == "3"


def test_what_is_released_is_not_confirmed() -> None:
    reserve("u1")
    release("prod", resource="pods", uid="u1")
    assert confirm_seen("prod", resource="pods", seen={"u1"}) == 0
    assert confirm("prod", resource="pods", uid="u1") == 0
    assert states() == {"u1": "released"}


def test_charges_of_a_deleted_quota_live_on() -> None:
    reserve("u1", "u2", "u3", seconds_ago=1000)
    quota = ResourceQuota.objects.get()
    deleted = services.delete_policy(policy=quota, user="x").revision
    assert deleted is not None
    assert confirm_seen("prod", resource="pods", seen={"u1"}) == 1
    assert release("prod", resource="pods", uid="u3") == 1
    assert give_back_orphans() == 1
    services.restore_revision(revision=deleted, user="x")
    assert (states(), used()) == ({"u1": "confirmed", "u2": "released", "u3": "released"}, "1")


def test_a_quota_of_the_same_name_inherits_nothing() -> None:
    reserve("u1")
    services.delete_policy(policy=ResourceQuota.objects.get(), user="x")
    factories.resource_quota({"pods": "5"})
    assert used() == "0"
    assert release("prod", resource="pods", uid="u1") == 1
    assert used() == "0"


def test_a_limit_below_what_is_used_denies_creates_and_takes_deletes() -> None:
    reserve("u1", "u2")
    factories.resource_quota({"pods": "1"})
    assert used() == "2"
    [allowed] = charges.admit(builders.request(builders.pod(uid="u3"), namespace="team"))
    assert not allowed
    assert release("prod", resource="pods", uid="u1") == 1
    assert used() == "1"


def test_an_object_seen_smaller_gives_back() -> None:
    quota = factories.resource_quota({"pods": "5", "requests.cpu": "9"}, name="cpu")
    container = builders.container(requests={"cpu": "4"})
    request = builders.request(
        builders.pod(container, uid="u1", namespace="team"), namespace="team"
    )
    charges.admit(request)
    seen = {quota.uid: {"pods": Quantity.parse("1"), "requests.cpu": Quantity.parse("1500m")}}
    assert confirm("prod", resource="pods", uid="u1", amounts=seen) == 2
    assert QuotaUsage.objects.get(quota=quota).used == {"pods": "1", "requests.cpu": "1500m"}


def test_the_clock_is_the_databases() -> None:
    before = read_clock()
    reserve("u1")
    charge = Charge.objects.get()
    assert before <= charge.created <= read_clock()
