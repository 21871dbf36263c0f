"""Random histories: after every event the ledger says what a sequential model of it says.

``LEDGER_SEEDS`` sets how many histories are played; each is fixed by its number.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from django.db import connection, transaction

from engine.decision import Charge as DecidedCharge
from engine.policy import PolicyRef
from engine.quantity import Quantity
from engine.resource_list import parse
from policies.ledger.book import Book, open_book
from policies.ledger.recount import recount, settle
from policies.ledger.release import confirm, confirm_seen, release, set_opening_balance
from policies.models import Charge, Namespace, QuotaUsage, ResourceQuota, ResourceQuotaRow
from tests import factories
from tests.sequential_ledger import SequentialQuota, growth_of

if TYPE_CHECKING:
    from policies import ledger
    from tests.sequential_ledger import Amounts, Change

pytestmark = [pytest.mark.django_db, pytest.mark.no_cover]
NAMES = ("pods", "requests.cpu")
QUOTAS = ("a", "b")
UIDS = [f"u{number}" for number in range(5)]
EVENTS = 8
PARTS = 25
REF = PolicyRef(kind="ResourceQuota", namespace="team", name="any")


def number_of_seeds() -> int:
    usual = 1000 if connection.vendor == "sqlite" else 100
    return int(os.environ.get("LEDGER_SEEDS", usual))


def quantities(amounts: Amounts) -> dict[str, Quantity]:
    return {name: Quantity.from_int(amount) for name, amount in amounts.items()}


def read_hard(dice: random.Random) -> Amounts:
    names = dice.sample(NAMES, dice.randint(1, len(NAMES)))
    return {name: dice.randint(1, 8) for name in names}


class Start(NamedTuple):
    """Some quotas, with what was used before the ledger began; many histories start here."""

    namespace: Namespace
    quotas: dict[str, ResourceQuota]
    hard: dict[str, Amounts]
    opening: dict[str, Amounts]


def make_start(number: int) -> Start:
    dice = random.Random(number)  # noqa: S311 - to be repeatable
    start = Start(factories.namespace(), {}, {}, {})
    for name in QUOTAS:
        quota = ResourceQuota.objects.create(namespace=start.namespace, name=name)
        start.quotas[name], start.hard[name] = quota, read_hard(dice)
        start.opening[name] = {n: dice.randint(0, 2) for n in start.hard[name]}
        set_rows(quota, start.hard[name])
        set_opening_balance(quota, quantities(start.opening[name]))
    return start


def set_rows(quota: ResourceQuota, hard: Amounts) -> None:
    quota.rows.all().delete()
    ResourceQuotaRow.objects.bulk_create(
        ResourceQuotaRow(quota=quota, resource=name, hard=str(amount))
        for name, amount in hard.items()
    )
    settle(quota)


class History:
    """The ledger and its model beside each other, and what lives in the cluster."""

    def __init__(self, start: Start, seed: int) -> None:
        self.namespace = start.namespace
        self.dice = random.Random(seed)  # noqa: S311 - to be repeatable
        self.live: dict[str, Amounts] = {}
        self.ids = {name: quota.pk for name, quota in start.quotas.items()}
        self.uids = {name: quota.uid for name, quota in start.quotas.items()}
        self.model = {
            name: SequentialQuota(hard=start.hard[name], opening=dict(start.opening[name]))
            for name in QUOTAS
        }

    def admit(self) -> None:
        """Some requests in one book: new objects, replays, growth and the opposite."""
        uids = self.dice.choices(UIDS, k=self.dice.randint(1, 4))
        owner = self.namespace.cluster_id
        with transaction.atomic():
            keys = [(owner, "pods", uid) for uid in uids]
            book = open_book(self.ids.values(), keys, grown=self.ids.values())
            for uid in uids:
                self._decide(book, (owner, "pods", uid))
            book.write()

    def _decide(self, book: Book, key: ledger.Key) -> None:
        uid, present = key[2], [name for name in QUOTAS if self.model[name].exists]
        change = self._change_of(uid)
        for name in present:
            quota = self.model[name]
            seen = book.used(self.ids[name], key, quantities(quota.cut(change[0])))
            wanted = quota.used_without(uid, quota.cut(change[0]))
            assert seen == quantities(wanted), (name, uid)
        if not all(self.model[name].has_room(uid, change) for name in present):
            return
        for name in present:
            self._charge(book, name, key, change)
        if self.dice.random() < 0.8:
            self.live[uid] = change[1]

    def _change_of(self, uid: str) -> Change:
        wanted = {"pods": 1, "requests.cpu": self.dice.randint(0, 4)}
        return self.live.get(uid, {}), wanted

    def _charge(self, book: Book, name: str, key: ledger.Key, change: Change) -> None:
        quota = self.model[name]
        before, after = map(quota.cut, change)
        delta, whole = quantities(growth_of(before, after)), quantities(after)
        decided = DecidedCharge(quota=REF, delta=delta, amounts=whole)
        book.charge(self.ids[name], key, name="p", decided=decided)
        quota.charge(key[2], change)

    def confirm(self) -> None:
        """The object is seen as it is."""
        uid = self.dice.choice(UIDS)
        if uid not in self.live:
            return
        amounts = {
            self.uids[name]: quantities(quota.cut(self.live[uid]))
            for name, quota in self.model.items()
        }
        confirm("prod", resource="pods", uid=uid, amounts=amounts)
        for quota in self.model.values():
            entry = quota.entries.get(uid)
            if entry is not None and entry.state != "released":
                entry.state, entry.amounts = "confirmed", quota.cut(self.live[uid])

    def confirm_seen(self) -> None:
        """A list shows what lives."""
        confirm_seen("prod", resource="pods", seen=self.live)
        for quota in self.model.values():
            for uid in self.live.keys() & quota.entries.keys():
                if quota.entries[uid].state == "reserved":
                    quota.entries[uid].state = "confirmed"

    def release(self) -> None:
        """The object is gone."""
        uid = self.dice.choice(UIDS)
        self.live.pop(uid, None)
        release("prod", resource="pods", uid=uid)
        for quota in self.model.values():
            if uid in quota.entries:
                quota.entries[uid].state = "released"

    def change_hard(self) -> None:
        """Limits move, below what is used, too; names come and go."""
        name = self.dice.choice(QUOTAS)
        if self.model[name].exists:
            self.model[name].hard = read_hard(self.dice)
            set_rows(ResourceQuota.objects.get(name=name), self.model[name].hard)

    def delete_or_restore(self) -> None:
        """A quota goes, or comes back under its uid."""
        name = self.dice.choice(QUOTAS)
        quota = self.model[name]
        if quota.exists:
            ResourceQuota.objects.get(name=name).delete()
        else:
            back = ResourceQuota.objects.create(
                namespace=self.namespace, name=name, uid=self.uids[name]
            )
            set_rows(back, quota.hard)
            self.ids[name] = back.pk
        quota.exists = not quota.exists

    def play(self) -> None:
        """One event; most are admissions."""
        rare = (self.confirm, self.confirm_seen, self.release, self.change_hard)
        self.dice.choice((self.admit, self.admit, self.admit, *rare, self.delete_or_restore))()
        self.check()

    def check(self) -> None:
        """The ledger says what the model says: charges, and their sum."""
        present = {name: quota for name, quota in self.model.items() if quota.exists}
        found = QuotaUsage.objects.values_list("quota_uid", "used")
        assert {uid: parse(used) for uid, used in found} == {
            self.uids[name]: quantities(quota.used()) for name, quota in present.items()
        }
        rows = Charge.objects.filter(resource="pods")
        charges = rows.values_list("quota_uid", "object_uid", "amounts", "state")
        assert {
            (quota, uid): (parse(amounts), state) for quota, uid, amounts, state in charges
        } == {
            (self.uids[name], uid): (quantities(entry.amounts), entry.state)
            for name, quota in self.model.items()
            for uid, entry in quota.entries.items()
        }


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
def test_every_history_is_that_of_the_model(part: int) -> None:
    start = make_start(part)
    for seed in range(part, number_of_seeds(), PARTS):
        with transaction.atomic():
            history = History(start, seed)
            try:
                for _ in range(EVENTS):
                    history.play()
            except AssertionError as error:
                error.add_note(f"history {seed}")
                raise
            transaction.set_rollback(True)


def test_after_a_pass_the_ledger_is_what_lives() -> None:
    history = History(make_start(7), 7)
    for uid in UIDS:
        history.admit()
        history.live.pop(uid, None)
    for uid in UIDS:
        if uid in history.live:
            confirm("prod", resource="pods", uid=uid)
        else:
            release("prod", resource="pods", uid=uid)
    held = Charge.objects.filter(resource="pods").exclude(state="released")
    assert {row.object_uid for row in held} <= history.live.keys()
    assert recount("prod") == []
