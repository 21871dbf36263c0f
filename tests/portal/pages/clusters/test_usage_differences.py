"""A cluster's page says where its ledger and the cluster count differently, and because of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from portal.pages.clusters.usage_differences import (
    OBJECTS,
    QUOTAS,
    UsageDifference,
    ledger_differences,
)
from sync.models import UsageComparison
from tests import factories

if TYPE_CHECKING:
    from policies.models import Cluster

pytestmark = pytest.mark.django_db


def pod(name: str, **fields: str) -> dict[str, str]:
    return {"kind": "Pod", "name": name, "amount": "1", "side": "ledger", **fields}


def compared(differences: Any, *, quota: str = "rq", days: int = 1) -> Cluster:
    cluster, now = factories.cluster(), timezone.now()
    UsageComparison.objects.create(
        cluster=cluster,
        namespace="team",
        quota=quota,
        differences=differences,
        compared=now,
        since=now - timezone.timedelta(days=days) if differences else None,
    )
    return cluster


def test_both_amounts_and_the_objects_behind_them_are_told() -> None:
    gone = pod("gone", why="deleted")
    one = {"resource": "pods", "ledger": "3", "cluster": "1", "objects": [gone, pod("odd")]}
    cluster = compared([{**one, "unexplained": "0"}])
    [found] = ledger_differences(cluster)
    assert found == UsageDifference(
        namespace="team",
        quota="rq",
        resource="pods",
        ledger="3",
        cluster="1",
        because=[
            "Pod gone: 1, counted by the ledger only (deleted)",
            "Pod odd: 1, counted by the ledger only",
        ],
        since=UsageComparison.objects.get().since,
    )


def test_who_counts_nothing_has_no_amount_and_what_is_left_is_told() -> None:
    cluster = compared([{"resource": "cpu", "ledger": "2", "cluster": None, "unexplained": "2"}])
    [found] = ledger_differences(cluster)
    assert (found.ledger, found.cluster[:1].isdigit()) == ("2", False)
    assert found.because == ["not explained: 2"]


def test_of_many_objects_the_first_are_named() -> None:
    objects = [pod(f"p{number}") for number in range(OBJECTS + 3)]
    [found] = ledger_differences(compared([{"resource": "pods", "objects": objects}]))
    assert len(found.because) == OBJECTS + 1
    assert found.because[-1] == "and 3 more objects"


@pytest.mark.parametrize("odd", [[], {}, "odd", ["odd", 1], [[]]], ids=repr)
def test_what_is_no_difference_is_not_shown(odd: Any) -> None:
    assert ledger_differences(compared(odd)) == []


def test_those_that_have_differed_longest_come_first() -> None:
    for number in range(QUOTAS + 2):
        cluster = compared([{"resource": "pods"}], quota=f"rq-{number}", days=1 + number)
    found = [row.quota for row in ledger_differences(cluster)]
    assert found == [f"rq-{number}" for number in range(QUOTAS + 1, 1, -1)]
