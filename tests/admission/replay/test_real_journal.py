"""The journal that a ledger really writes, replayed against its own hard values and lower ones."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest

from admission.models import Replay
from admission.replay import work
from admission.replay.policies import Proposal
from admission.replay.scope import ReplayScope
from policies.db.clock import read_clock
from policies.ledger.release import confirm, release
from policies.models import QuotaUsage
from tests import builders, charges, factories
from tests.reviews import quota

pytestmark = pytest.mark.django_db
HARD = {"pods": "6", "requests.cpu": "9"}


def admit(uid: str, cpu: str) -> bool:
    pod = builders.pod(builders.container(requests={"cpu": cpu}), uid=uid, namespace="team")
    request = builders.request(pod, namespace="team", uid=uid)
    return charges.admit(request) == [True]


def lived(number: int) -> int:
    """Admit, confirm and release pods at random; returns how many were admitted."""
    dice = random.Random(number)  # noqa: S311 - repeatable on purpose
    running: list[str] = []
    admitted = 0
    for step in range(60):
        if running and dice.random() < 0.4:
            release("prod", resource="pods", uid=running.pop(dice.randrange(len(running))))
        elif admit(f"p{step}", dice.choice(("1", "2", "3"))):
            running.append(f"p{step}")
            admitted += 1
            if dice.random() < 0.5:
                confirm("prod", resource="pods", uid=f"p{step}")
    return admitted


def replayed(hard: Any, since: dt.datetime) -> Any:
    proposal = Proposal(manifests=(quota("compute", namespace="team", hard=hard),))
    until = read_clock() + dt.timedelta(minutes=1)
    scope = ReplayScope(cluster="prod", since=since, until=until)
    requested = work.request(scope, proposal, user="ada")
    work.carry_out(requested.uid)
    (found,) = (Replay.objects.get(pk=requested.pk).report or {})["quotas"]
    return found["report"]


@pytest.mark.parametrize("number", range(6))
def test_with_as_much_room_nothing_waits_and_usage_is_the_ledgers(number: int) -> None:
    factories.resource_quota(HARD, name="compute")
    since = read_clock() - dt.timedelta(minutes=1)
    admitted = lived(number)
    # A name more, so that the quota differs; the journal tells nothing of it.
    report = replayed({**HARD, "services": "1"}, since)
    assert sum(report["waits"].values()) == 0
    assert report["unknown_names"] == ["services"]
    assert report["changes"] >= admitted
    last = report["points"][-1]["used"]
    used = QuotaUsage.objects.get().used
    assert {name: int(last[name]) >= int(used[name]) for name in HARD} == dict.fromkeys(HARD, True)


@pytest.mark.parametrize("number", range(6))
def test_with_less_room_requests_wait_and_usage_stays_below(number: int) -> None:
    factories.resource_quota(HARD, name="compute")
    since = read_clock() - dt.timedelta(minutes=1)
    lived(number)
    report = replayed({"pods": "2", "requests.cpu": "9"}, since)
    assert sum(report["waits"].values()) > 0
    assert int(report["peak"]["pods"]) == 2
    assert report["full_times"] > 0


def test_what_was_used_before_the_time_is_its_start() -> None:
    factories.resource_quota(HARD, name="compute")
    assert admit("a", "1")
    assert admit("b", "1")
    since = read_clock()
    assert admit("c", "1")
    report = replayed({"pods": "2", "requests.cpu": "9"}, since)
    assert report["points"][0]["used"]["pods"] == "2"
    assert report["waits"]["waiting"] == 1
