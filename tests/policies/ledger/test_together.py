"""Books, lists, releases, policy writes and recounts at once: no deadlock, and all sums exact."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection, connections, transaction

from engine.decision import Charge as DecidedCharge
from engine.policy import PolicyRef
from engine.quantity import Quantity
from policies import ledger, services
from policies.db.clock import read_clock
from policies.ledger.book import Book, open_book
from policies.ledger.recount import recount
from policies.ledger.release import confirm, confirm_seen, release, release_orphans
from policies.models import Charge, Cluster, QuotaUsage, ResourceQuota
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)
ONE = {"pods": Quantity.parse("1")}
DECIDED = DecidedCharge(
    quota=PolicyRef(kind="ResourceQuota", namespace="any", name="any"), delta=ONE, amounts=ONE
)
NAMESPACES = ("n0", "n1")
NAMES = ("a", "b", "c")
UIDS = [f"u{number}" for number in range(40)]
HARD = 25


def make_quota(namespace: str, name: str, hard: int = HARD) -> None:
    document = factories.manifest(
        "ResourceQuota", {"hard": {"pods": str(hard)}}, name=name, namespace=namespace
    )
    factories.apply(document)


@pytest.fixture(autouse=True)
def _quotas(transactional_db: None) -> None:
    for namespace in NAMESPACES:
        for name in NAMES:
            make_quota(namespace, name)


def charge_batch(dice: random.Random) -> None:
    """Some objects of all namespaces in one book, as a batch of a writer is; each three times."""
    cluster = Cluster.objects.get().pk
    rows = list(QuotaUsage.objects.all())
    dice.shuffle(rows)
    rows = rows[: dice.randint(2, len(rows))]
    keys = [(cluster, "pods", uid) for uid in dice.sample(UIDS, 6)]
    with transaction.atomic():
        book = open_book([row.pk for row in rows], keys)
        for key in keys * 3:
            for row in rows:
                charge_one(book, row.pk, key)
        book.write()


def charge_one(book: Book, quota_id: int, key: ledger.Key) -> None:
    if book.has(quota_id) and book.used(quota_id, key, {})["pods"] < Quantity.from_int(HARD):
        book.charge(quota_id, key, name="p", decided=DECIDED)


def release_some(dice: random.Random) -> None:
    for uid in dice.sample(UIDS, 3):
        release("prod", resource="pods", uid=uid)


def show_list(dice: random.Random) -> None:
    confirm_seen("prod", resource="pods", seen=set(dice.sample(UIDS, 20)))
    confirm("prod", resource="pods", uid=dice.choice(UIDS))


def show_old_list(dice: random.Random) -> None:
    Charge.objects.filter(object_uid=dice.choice(UIDS), state="reserved").update(
        reserved_at=read_clock().replace(year=2020)
    )
    release_orphans("prod", list_started=read_clock(), seen=())


def write_policy(dice: random.Random) -> None:
    make_quota(dice.choice(NAMESPACES), dice.choice(NAMES), dice.randint(HARD, HARD + 9))


def delete_and_restore(_dice: random.Random) -> None:
    quota = ResourceQuota.objects.filter(name="c", namespace__name="n1").first()
    revision = services.delete_policy(policy=quota, user="x").revision if quota else None
    if revision is not None:
        services.restore_revision(revision=revision, user="x")


def repair(_dice: random.Random) -> None:
    assert recount("prod", repair=True) == [], "under lock nothing is ever uneven"


def in_thread(work: Callable[[random.Random], None], number: int) -> None:
    try:
        if connection.vendor == "sqlite":
            connection.cursor().execute("PRAGMA busy_timeout = 60000")
        work(random.Random(number))  # noqa: S311 - to be repeatable
    finally:
        connections.close_all()


WORK: tuple[Callable[[random.Random], None], ...] = (
    charge_batch,
    release_some,
    charge_batch,
    show_list,
    charge_batch,
    write_policy,
    charge_batch,
    show_old_list,
    charge_batch,
    repair,
)


def at_once(work: tuple[Callable[[random.Random], None], ...], count: int) -> None:
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(in_thread, work[i % len(work)], i) for i in range(count)]
    for job in jobs:
        job.result()


def check_all() -> None:
    assert recount("prod") == []
    for row in QuotaUsage.objects.all():
        held = Charge.objects.filter(quota_uid=row.quota_uid).exclude(state="released")
        assert row.used == {"pods": str(held.count())}
        assert held.count() <= HARD


def test_everybody_at_once() -> None:
    at_once(WORK, 120 if connection.vendor == "postgresql" else 30)
    check_all()


def test_a_quota_comes_and_goes_under_load() -> None:
    at_once(
        (charge_batch, release_some, charge_batch, show_list),
        20,
    )
    with ThreadPoolExecutor(2) as pool:
        coming_and_going = pool.submit(
            lambda: [in_thread(delete_and_restore, number) for number in range(5)]
        )
        at_once((charge_batch, release_some, show_list), 30)
        coming_and_going.result()
    check_all()
