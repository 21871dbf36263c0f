"""What tests of stored replays share: a world's decisions on record in a stored cluster."""

from __future__ import annotations

import datetime as dt
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from admission.record import backdate
from admission.wire.review import parse_request
from engine.request import Phase
from policies import services, snapshot
from policies.models import Cluster
from tests.builders import container, limit_range
from tests.reviews import new_pod, review

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN = dt.datetime(2026, 9, 21, 23, 59, 50, tzinfo=dt.UTC)
STORED = limit_range({"type": "Container", "max": {"cpu": "2"}})
PROPOSED = limit_range({"type": "Container", "max": {"cpu": "500m"}})


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A cluster with one LimitRange in the namespace ns."""
    made = Cluster(name="demo")
    services.save_cluster(cluster=made, user="root")
    services.apply_manifest(cluster=made, manifest=STORED, user="root", create_namespace=True)
    return made


@pytest.fixture
def decided(cluster: Cluster) -> Callable[..., list[str]]:
    """Record pods of some cpu requests, a second apart; returns the ids of the decisions."""
    numbers = count()

    def record(*amounts: str, namespace: str = "ns", begin: dt.datetime = BEGIN) -> list[str]:
        policies = snapshot.refresh().clusters["demo"].policy_set(namespace)
        rows: list[Any] = []
        for number, amount in enumerate(amounts):
            resources = {"requests": {"cpu": amount}, "limits": {"cpu": amount}}
            pod = new_pod(f"web-{number}", container(**resources), namespace=namespace)
            moment = begin + dt.timedelta(seconds=number)
            call = backdate.PastCall(
                request=parse_request(review(pod, namespace=namespace)),
                phase=Phase.VALIDATE,
                moment=moment,
                microseconds=100,
                client="",
                random=next(numbers),
                revision=1,
            )
            rows.append(backdate.decide(call, policies, {})[1])
        backdate.keep(rows)
        return [row["id"] for row in rows]

    return record
