"""Many at once: exactly what fits is allowed, and everything is on record."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client

from admission.models import AuditEvent
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

HARD, CREATES, THREADS = 50, 200, 16
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asked_at_once(secret: str) -> Callable[[list[Any]], list[bool]]:
    """Ask from many threads, each with its own connection; the verdicts in order."""

    def one(body: Any) -> bool:
        try:
            address = f"/admission/demo/{secret}/validate?timeout=30s"
            response = Client().post(address, json.dumps(body), content_type="application/json")
            assert response.status_code == 200, response.content
            return bool(response.json()["response"]["allowed"])
        finally:
            connection.close()

    def run(bodies: list[Any]) -> list[bool]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(one, bodies))

    return run


def test_exactly_what_fits_is_allowed(
    asked_at_once: Callable[..., list[bool]], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota(hard={"pods": str(HARD)}))
    verdicts = asked_at_once([review(new_pod(f"p{i}")) for i in range(CREATES)])
    assert verdicts.count(True) == HARD
    assert used() == str(HARD)
    assert AuditEvent.objects.count() == CREATES
    assert AuditEvent.objects.allowed().count() == HARD


def test_replays_at_once_charge_each_object_once(
    asked_at_once: Callable[..., list[bool]], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota(hard={"pods": "20"}))
    pods = [new_pod(f"p{i}") for i in range(20)]
    verdicts = asked_at_once([review(made) for made in pods for _ in range(3)])
    assert verdicts == [True] * 60
    assert used() == "20"


def test_overlapping_quotas_do_not_deadlock(
    asked_at_once: Callable[..., list[bool]], apply: Callable[..., None], used: Callable[..., str]
) -> None:
    names = ("a", "b", "c")
    apply(*(quota(name, hard={"pods": "30"}) for name in names))
    verdicts = asked_at_once([review(new_pod(f"p{i}")) for i in range(60)])
    assert verdicts.count(True) == 30
    assert [used(name) for name in names] == ["30"] * 3
