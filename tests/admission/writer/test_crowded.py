"""The writer beside others who hold quotas: nobody waits for those who need something else."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, connections, transaction

from admission import writer
from admission.writer import batch
from admission.writer.pending_decision import Needs
from policies.models import QuotaUsage
from tests import factories
from tests.admission.writer.test_writer import Waiting, gathered, outcome_of, recorded, submitted
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="who writes to SQLite holds all of it"
    ),
]


class Counted(Waiting):
    """An item that asks for the used amounts of some quotas."""

    def __init__(self, *quotas: QuotaUsage) -> None:
        super().__init__()
        self.needs = Needs(
            quota_ids=tuple(quota.pk for quota in quotas),
            object_key=(quotas[0].cluster_id, "pods", self.id),
        )


@pytest.fixture
def quotas(transactional_db: None) -> list[QuotaUsage]:
    for namespace in ("a", "b"):
        document = factories.manifest(
            "ResourceQuota", {"hard": {"pods": "5"}}, name="rq", namespace=namespace
        )
        factories.apply(document)
    return list(QuotaUsage.objects.order_by("namespace"))


@contextmanager
def held(quota: QuotaUsage) -> Iterator[None]:
    """Another writer's transaction has the quota's row, until the block ends."""
    holding, gate = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            QuotaUsage.objects.select_for_update(no_key=True).get(pk=quota.pk)
            holding.set()
            gate.wait()
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    try:
        yield
    finally:
        gate.set()
        thread.join()


def somebody_waits() -> bool:
    """Whether a transaction waits for a lock of another one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def test_who_needs_what_is_held_is_passed_by_and_comes_with_the_next(
    quotas: list[QuotaUsage],
) -> None:
    one, both, other = Counted(quotas[0]), Counted(*quotas), Counted(quotas[1])
    with held(quotas[0]):
        submitted(one, both, other)
        assert outcome_of(other) == other.id
        assert recorded() & {one.id, both.id, other.id} == {other.id}
    assert [outcome_of(one), outcome_of(both)] == [one.id, both.id]
    assert [len(item.books) for item in (one, both, other)] == [1, 1, 1]


def test_all_wait_for_who_was_passed_by_often_enough(quotas: list[QuotaUsage]) -> None:
    last = Counted(quotas[0])
    last.passes = batch.MOST_PASSES
    with held(quotas[0]):
        others = [Counted(quotas[1]), Counted(quotas[1])]
        submitted(last, *others)
        wait_for(somebody_waits)
        assert not recorded() & {item.id for item in others}
    assert [outcome_of(item) for item in (last, *others)] == [last.id, *[o.id for o in others]]
    assert {id(item.books[0]) for item in others} == {id(last.books[0])}


def test_who_finds_everything_held_waits_with_the_next_batches(
    quotas: list[QuotaUsage], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    real = batch.begin

    def begin(items: list[Any], *, waits: bool) -> batch.Attempt:
        asked.append(waits)
        return real(items, waits=waits)

    monkeypatch.setattr("admission.writer.session_line.begin", begin)
    items = [Counted(quotas[0]), Counted(quotas[0])]
    with held(quotas[0]):
        submitted(*items)
        wait_for(somebody_waits)
    assert [outcome_of(item) for item in items] == [item.id for item in items]
    assert gathered(Waiting()) != []
    assert asked[:3] == [False, False, True]
    assert all(asked[2:])


def test_a_stopped_writer_has_written_those_too_who_were_passed_by(
    quotas: list[QuotaUsage],
) -> None:
    items = [Counted(quotas[0]), Counted(quotas[1])]
    with held(quotas[0]):
        submitted(*items)
        stopping = threading.Thread(target=writer.stop)
        stopping.start()
        assert outcome_of(items[1]) == items[1].id
    stopping.join()
    assert {item.id for item in items} <= recorded()
