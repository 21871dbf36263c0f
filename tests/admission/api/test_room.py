"""A refusal for want of room is decided again before it is final, where a follower is alive."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now

from admission.api import waits
from admission.models import AuditEvent
from policies.models import Charge, ClusterFollower, QuotaUsage
from policies.snapshot import followed
from tests.admission.api.test_endpoint_metrics import count
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made; each takes no time."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


@pytest.fixture
def full(ask: Callable[..., Any], apply: Callable[..., None], cluster: Cluster) -> None:
    """A quota of one pod, which is there; and a follower that is alive."""
    apply(quota())
    ClusterFollower.objects.create(cluster=cluster, heartbeat=Now())
    assert ask(review(new_pod("first"))).json()["response"]["allowed"] is True


def verdicts() -> list[str]:
    return list(AuditEvent.objects.order_by("created").values_list("verdict", flat=True))


@pytest.mark.usefixtures("full")
def test_room_that_comes_meanwhile_is_used(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(_seconds: float) -> None:
        Charge.objects.all().delete()
        QuotaUsage.objects.update(used={"pods": "0"})

    monkeypatch.setattr(time, "sleep", free)
    assert ask(review(new_pod("second"))).json()["response"]["allowed"] is True
    # What was decided meanwhile is on no record.
    assert verdicts() == ["allowed", "allowed"]


@pytest.mark.usefixtures("full")
def test_refusal_is_final_after_two_pauses(ask: Callable[..., Any], pauses: list[float]) -> None:
    before = count("gatehouse_admission_waits_total", outcome="for-room")
    assert ask(review(new_pod("second"))).json()["response"]["status"]["code"] == 403
    assert pauses == list(waits.PAUSES)
    assert verdicts() == ["allowed", "denied"]
    assert count("gatehouse_admission_waits_total", outcome="for-room") == before + 2


@pytest.mark.usefixtures("full")
def test_without_a_live_follower_nobody_waits(ask: Callable[..., Any], pauses: list[float]) -> None:
    ClusterFollower.objects.update(heartbeat="2026-01-01T00:00:00Z")
    followed.forget_looks()
    assert ask(review(new_pod("second"))).json()["response"]["allowed"] is False
    assert pauses == []


@pytest.mark.usefixtures("full")
def test_caller_with_little_time_is_answered_at_once(
    ask: Callable[..., Any], pauses: list[float]
) -> None:
    assert (
        ask(review(new_pod("second")), query="?timeout=2s").json()["response"]["allowed"] is False
    )
    assert pauses == []


@pytest.mark.usefixtures("full")
def test_what_no_room_would_cure_is_refused_at_once(
    ask: Callable[..., Any], apply: Callable[..., None], pauses: list[float]
) -> None:
    apply(SEED_LIMITS)
    too_big = new_pod("second", container(limits={"cpu": "2"}))
    assert ask(review(too_big)).json()["response"]["allowed"] is False
    assert pauses == []


@pytest.mark.usefixtures("full")
def test_where_too_many_wait_a_refusal_is_final_at_once(
    ask: Callable[..., Any], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "_room", threading.BoundedSemaphore(1))
    with waits._entered(waits._room):
        assert ask(review(new_pod("second"))).json()["response"]["allowed"] is False
    assert pauses == [0.0]
    assert verdicts() == ["allowed", "denied"]
