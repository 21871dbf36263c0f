"""Many at once: the ledger admits exactly what there is room for, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection, connections

from policies.ledger.recount import recount
from policies.ledger.release import release
from policies.models import Charge, QuotaUsage
from tests import builders, charges, factories

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 8


def attempt(uid: str) -> bool:
    try:
        request = builders.request(
            builders.pod(uid=uid, namespace="team"), namespace="team", uid=uid
        )
        return _admit(request)
    finally:
        connections.close_all()


def _admit(request: builders.AdmissionRequest) -> bool:
    if connection.vendor == "sqlite":
        connection.cursor().execute("PRAGMA busy_timeout = 60000")
    [allowed] = charges.admit(request)
    return allowed


def give_back(uid: str) -> bool:
    try:
        if connection.vendor == "sqlite":
            connection.cursor().execute("PRAGMA busy_timeout = 60000")
        return release("prod", resource="pods", uid=uid) > 0
    finally:
        connections.close_all()


def at_once(do: Callable[[str], bool], uids: list[str]) -> list[bool]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(do, uids))


def used() -> list[str]:
    return [row.used["pods"] for row in QuotaUsage.objects.order_by("quota__name")]


def test_exactly_as_many_as_there_is_room_for() -> None:
    factories.resource_quota({"pods": "7"}, name="a")
    factories.resource_quota({"pods": "9"}, name="b")
    verdicts = at_once(attempt, [f"u{i}" for i in range(30)])
    assert verdicts.count(True) == 7
    assert used() == ["7", "7"]
    assert recount("prod") == []


def test_each_asked_three_times_counts_once() -> None:
    factories.resource_quota({"pods": "10"})
    assert all(at_once(attempt, [f"u{i % 10}" for i in range(30)]))
    assert used() == ["10"]
    assert Charge.objects.count() == 10


def test_room_is_given_back_exactly() -> None:
    factories.resource_quota({"pods": "10"})
    uids = [f"u{i}" for i in range(10)]
    at_once(attempt, uids)
    assert at_once(give_back, uids * 2).count(True) == 10
    assert used() == ["0"]
