"""Reservations that come to nothing, late lists, changes of all kinds: never below reality.

The cluster is pretended and time is made to pass by ageing the charges.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from engine.request import Operation
from engine.resource_list import parse
from policies.db.clock import read_clock
from policies.ledger.release import confirm_seen
from policies.models import Charge
from sync.inventory import observations
from sync.passes import ledger_pass
from tests import factories
from tests.builders import request
from tests.charges import admit
from tests.sync.passes.test_ledger_pass import age, let_in, look, used
from tests.sync.pretended import Manifest, PretendedCluster, live_pod

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.django_db, pytest.mark.no_cover]
LEASE = timedelta(minutes=3)


@pytest.fixture
def there() -> PretendedCluster:
    return PretendedCluster()


@pytest.mark.long
def test_creates_that_another_webhook_refuses_are_given_back_within_two_passes(
    there: PretendedCluster,
) -> None:
    factories.resource_quota({"pods": "1000"})
    chance = random.Random(16)  # noqa: S311 - repeatable
    for number in range(1000):
        pod = live_pod(f"p{number}")
        let_in(pod)
        if chance.random() >= 0.3:
            there.put(pod)
        if number % 250 == 0:
            look(there)
            assert count() >= len(there.objects["Pod"])
    # On a slow machine the first leases are over by now.
    assert look(there).keys() <= {"confirmed", "released"}
    assert count() >= len(there.objects["Pod"])
    age(LEASE)
    look(there)
    assert count() == len(there.objects["Pod"]) < 800


def count(resource: str = "pods", quota: str = "rq") -> int:
    return parse({"": used(resource, quota)})[""].nano // 10**9


def test_list_that_was_ten_minutes_on_its_way_releases_nothing_early(
    there: PretendedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.resource_quota({"pods": "9"})
    there.put(live_pod("other"))
    for name in ("orphan", "young"):
        let_in(live_pod(name))
    confirm_seen("prod", resource="pods", seen=[_uid("young")])
    age(timedelta(minutes=5))
    began = read_clock() - timedelta(minutes=10)
    with monkeypatch.context() as late:
        for each in (observations, ledger_pass):
            late.setattr(each, "read_clock", lambda: began)
        assert look(there) == {"added": 1}
    assert used() == "3"
    assert look(there) == {"released": 2}


@pytest.mark.parametrize("hours", [-1, 1])
def test_clock_of_the_worker_releases_nothing_early_or_late(
    there: PretendedCluster, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    factories.resource_quota({"pods": "9"})
    there.put(live_pod("other"))
    for name in ("old", "young"):
        let_in(live_pod(name))
    age(LEASE, object_name="old")
    wrong = time.time() + hours * 3600
    monkeypatch.setattr(time, "time", lambda: wrong)
    monkeypatch.setattr(timezone, "now", lambda: datetime.fromtimestamp(wrong, UTC))
    assert look(there) == {"added": 1, "released": 1}
    assert Charge.objects.get(object_name="young").state == "reserved"


def _uid(name: str) -> str:
    return Charge.objects.get(object_name=name).object_uid


class Model:
    """One namespace: what is there, and the requests that were admitted for it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable
        self.there = PretendedCluster()
        self.number = 0

    @property
    def pods(self) -> list[Manifest]:
        return list(self.there.objects["Pod"].values())

    def create(self) -> None:
        """Admit a pod; a third of them never come to be."""
        self.number += 1
        pod = live_pod(f"p{self.number}", cpu=str(self.random.randint(1, 4)))
        if self.random.random() < 0.5:
            pod["spec"]["priorityClassName"] = "high"
        if self._admit(pod) and self.random.random() > 0.3:
            self.there.put(pod)

    def resize(self) -> None:
        """Admit other resources; a third of those changes never come to be."""
        if not self.pods:
            return
        old = self.random.choice(self.pods)
        new = live_pod("x", cpu=str(self.random.randint(1, 4)))
        new = {**old, "spec": {**old["spec"], "containers": new["spec"]["containers"]}}
        more = {"operation": Operation.UPDATE, "sub_resource": "resize", "old_object": old}
        if self._admit(new, **more) and self.random.random() > 0.3:
            self.there.put(new)

    def delete(self) -> None:
        if self.pods:
            self.there.take(self.random.choice(self.pods))

    def finish(self) -> None:
        if self.pods:
            self.random.choice(self.pods)["status"] = {"phase": "Succeeded"}

    def look(self) -> None:
        look(self.there)

    def rest(self) -> None:
        """Let the leases run out, then look twice."""
        age(LEASE)
        look(self.there)
        look(self.there)
        assert _figures() == self.expected()

    def _admit(self, obj: Manifest, **more: Any) -> bool:
        [allowed] = admit(request(obj, namespace="team", **more))
        return allowed

    def expected(self) -> dict[str, int]:
        running = [pod for pod in self.pods if pod["status"]["phase"] == "Running"]
        cores = [int(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in running]
        high = [pod for pod in running if pod["spec"].get("priorityClassName") == "high"]
        return {
            "count/pods": len(self.pods),
            "pods": len(running),
            "cpu": sum(cores),
            "high": len(high),
        }


def _figures() -> dict[str, int]:
    names = ("count/pods", "pods", "cpu")
    return {**{name: count(name) for name in names}, "high": count(quota="high")}


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_ledger_is_never_below_and_soon_equal(seed: int) -> None:
    factories.resource_quota({"count/pods": "40", "pods": "30", "cpu": "60"})
    only_high = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    factories.resource_quota(
        {"pods": "15"}, name="high", scopeSelector={"matchExpressions": [only_high]}
    )
    model = Model(seed)
    steps: list[Callable[[], None]] = [
        *[model.create] * 5,
        *[model.resize] * 3,
        model.delete,
        model.finish,
        model.look,
        model.rest,
    ]
    for _ in range(60):
        model.random.choice(steps)()
        real = model.expected()
        assert all(_figures()[name] >= real[name] for name in real)
    model.rest()
