"""The checks of submitted changes that need the record: the replay, and the running pods."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission import change_checks, tasks
from admission.models import Replay
from admission.replay import work
from policies.db.clock import read_clock
from policies.models import ChangeCheck, ChangeSet
from policies.services import changes
from tests.admission.replay.conftest import PROPOSED
from tests.approvals import rule
from tests.changes import AUTHOR, change_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


def in_review(**terms: Any) -> ChangeSet:
    rule(checks_green=True, approvers=0, **terms)
    return changes.submit(change_of(PROPOSED, cluster="demo"), user=AUTHOR)


def turn() -> int:
    return change_checks.take_checks(until=time.monotonic() + 60)


def check_of(change: ChangeSet, kind: str) -> tuple[str, int | None]:
    found = ChangeCheck.objects.get(change=change, kind=kind)
    return found.state, found.number


def state_of(change: ChangeSet) -> str:
    change.refresh_from_db()
    return change.state


def replayed() -> None:
    for uid in work.due():
        work.carry_out(uid)


def test_a_replay_is_asked_for_once_and_its_refusals_are_counted(
    cluster: Cluster, decided: Callable[..., list[str]]
) -> None:
    decided("250m", "1", "2", begin=read_clock() - timedelta(hours=1))
    change = in_review(flips_over=0)
    assert check_of(change, "replay") == ("waiting", None)
    assert (turn(), turn()) == (0, 0)
    assert Replay.objects.filter(change_set=change.pk).count() == 1
    replayed()
    assert turn() == 1
    assert check_of(change, "replay") == ("warned", 2)
    assert (turn(), state_of(change)) == (0, "approved")


def test_a_replay_that_fails_is_a_check_that_fails(cluster: Cluster) -> None:
    change = in_review(flips_over=0)
    turn()
    replay = Replay.objects.get()
    assert replay.claim(read_clock())
    work.fail(replay.uid, "it took too long")
    turn()
    found = ChangeCheck.objects.get(change=change, kind="replay")
    assert (found.state, found.words) == ("failed", "it took too long")


def test_the_replay_of_another_content_does_not_count(cluster: Cluster) -> None:
    change = in_review(flips_over=0)
    turn()
    changes.withdraw(change, user=AUTHOR)
    item = change.items.get()
    item.content["spec"]["limits"][0]["max"]["cpu"] = "1"
    changes.put(change, proposals=[changes.propose(cluster, item.content)], user=AUTHOR)
    changes.submit(change, user=AUTHOR)
    replayed()
    turn()
    assert check_of(change, "replay") == ("waiting", None)
    assert Replay.objects.filter(change_set=change.pk).count() == 2


def test_running_pods_are_counted_at_once(cluster: Cluster) -> None:
    change = in_review(restarts_over=0)
    assert turn() == 1
    assert check_of(change, "restarts") == ("passed", 0)
    assert state_of(change) == "approved"


def test_beat_carries_out_what_waits(cluster: Cluster) -> None:
    change = in_review(restarts_over=0)
    tasks.check_changes()
    assert check_of(change, "restarts") == ("passed", 0)
