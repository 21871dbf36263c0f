"""A pretended cluster whose objects our ledger charges, and a follower that watches it: histories.

Time passes by ageing what is stored. What the ledger relies on is kept here, too: an admitted
create is stored or refused within ``CREATE_MARGIN``, an update within ``LIST_MARGIN``, no event
lies unread for longer, and the follower never passes an event older than what it knows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db import transaction
from django.db.models import F

from engine.decision import Charge as DecidedCharge
from engine.policy import PolicyRef
from engine.quantity import ZERO, Quantity
from engine.resource_list import parse
from policies.db.clock import read_clock
from policies.ledger.book import Book, open_book
from policies.ledger.observed import due_orphans, release_missing
from policies.models import Charge, QuotaUsage, ResourceQuota
from tests.pretended_follower import (
    HARD,
    NAMESPACE,
    PODS,
    Amounts,
    Follower,
    Thing,
    quantities,
)

if TYPE_CHECKING:
    from uuid import UUID

NAMES: Final = ("web", "db", "job", "cache")
LONGEST_CREATE: Final = 9  # seconds until it is stored or refused
LONGEST_UPDATE: Final = 55
MOST_LAG: Final = 45
REF: Final = PolicyRef(kind="ResourceQuota", namespace=NAMESPACE, name="any")


@dataclass
class UnderWay:
    """A request that we admitted, and that is neither stored nor refused yet."""

    thing: Thing
    old: Thing | None
    age: float = 0

    def growth(self, quota: str) -> Amounts:
        before = self.old.usage(quota) if self.old else {}
        return {n: max(a - before.get(n, 0), 0) for n, a in self.thing.usage(quota).items()}


class Batch(NamedTuple):
    """What was read from the watch or a list, and when."""

    things: list[Thing]
    received: datetime
    is_list: bool = False


class WatchedCluster:
    """Objects, requests under way, the log of events, and the follower: one random history."""

    def __init__(self, cluster_id: int, quotas: dict[str, ResourceQuota], seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - to be repeatable
        self.ids = {name: quota.pk for name, quota in quotas.items()}
        self.follower = Follower(cluster_id, {name: quota.uid for name, quota in quotas.items()})
        self.cluster_id = cluster_id
        self.things: dict[str, Thing] = {}  # by name
        self.log: list[Thing] = []
        self.position = 0
        self.batch: Batch | None = None
        self.pass_list: Batch | None = None
        self.under_way: list[UnderWay] = []
        self.lag = 0.0
        self.made = 0
        self.told: list[str] = []

    # What people and controllers do.

    def create(self) -> None:
        self.made += 1
        thing = Thing(
            uid=f"u{self.made}",
            name=self.dice.choice(NAMES),
            cpu=self.dice.randint(0, 4),
            is_fast=self.dice.random() < 0.5,
        )
        self._ask(UnderWay(thing, None))

    def update(self) -> None:
        """Resize, or move into the other quota's scope and back."""
        if self.things:
            old = self.things[self.dice.choice(sorted(self.things))]
            cpu, is_fast = self.dice.randint(0, 4), self.dice.random() < 0.5
            self._ask(UnderWay(replace(old, cpu=cpu, is_fast=is_fast), old))

    def resize_twice(self) -> None:
        """Shrink an object, and ask for more again before the follower has passed that on."""
        self.take()
        if self.things:
            old = self.things[self.dice.choice(sorted(self.things))]
            self._store(small := replace(old, cpu=0))
            self.read()
            small = self.things[small.name]
            self._ask(UnderWay(replace(small, cpu=old.cpu), small))
            self.take()

    def ask_again(self) -> None:
        """The API server repeats a review."""
        if self.under_way:
            again = self.dice.choice(self.under_way)
            self._decide(again)

    def finish(self) -> None:
        if self.things:
            thing = self.things[self.dice.choice(sorted(self.things))]
            self._store(replace(thing, is_finished=True))

    def touch(self) -> None:
        if self.things:
            self._store(self.things[self.dice.choice(sorted(self.things))])

    def delete(self) -> None:
        if self.things:
            thing = self.things.pop(self.dice.choice(sorted(self.things)))
            self.log.append(replace(thing, version=len(self.log) + 1, is_gone=True))

    def end_request(self) -> None:
        """A request is stored, or refused by somebody after us."""
        if self.under_way:
            self._end(self.dice.choice(self.under_way), is_refused=self.dice.random() < 0.3)

    def wait(self, seconds: float | None = None) -> None:
        """Time passes: everything that is stored gets older."""
        seconds = self.dice.choice((1, 5, 12, 30, 70, 70)) if seconds is None else seconds
        for one in list(self.under_way):
            longest = LONGEST_UPDATE if one.old else LONGEST_CREATE
            if one.age + seconds > longest:
                self._end(one, is_refused=self.dice.random() < 0.3)
            one.age += seconds
        if self.lag + seconds > MOST_LAG:
            self.drain()
        if self.batch or self.position < len(self.log):
            self.lag += seconds
        span = timedelta(seconds=seconds)
        Charge.objects.update(reserved_at=F("reserved_at") - span, updated=F("updated") - span)
        if self.batch:
            self.batch = self.batch._replace(received=self.batch.received - span)
        if self.pass_list:
            self.pass_list = self.pass_list._replace(received=self.pass_list.received - span)

    # What the follower does.

    def read(self) -> None:
        """Read some events, or all."""
        if self.batch is None and self.position < len(self.log):
            received = read_clock()
            end = self.dice.randint(self.position + 1, len(self.log))
            self.batch = Batch(self.log[self.position : end], received)
            self.position = end

    def take(self) -> None:
        """Take in what was read."""
        if self.batch is not None:
            batch, self.batch = self.batch, None
            take = self.follower.take_list if batch.is_list else self.follower.take
            take(batch.things, batch.received)
            if self.position == len(self.log):
                self.lag = 0

    def repeat(self) -> None:
        """The watch begins again at an older version."""
        if self.batch is None:
            self.position = max(0, self.position - self.dice.randint(1, 4))

    def lose_events(self) -> None:
        """A gap in the watch: a list before anything else."""
        self.batch = Batch(list(self.things.values()), read_clock(), is_list=True)
        self.position = len(self.log)

    def restart(self) -> None:
        self.batch, self.position, self.lag = None, len(self.log), 0
        received = read_clock()
        self.follower.recheck.clear()
        self.follower.begin(list(self.things.values()), received)

    def full_pass(self) -> None:
        """A worker lists everything, or compares what it listed some time ago."""
        if self.pass_list is None:
            self.pass_list = Batch(list(self.things.values()), read_clock())
        else:
            self.follower.compare(self.pass_list.things, self.pass_list.received)
            self.pass_list = None

    def recheck(self) -> None:
        """Read objects that may be charged too much."""
        uids, self.follower.recheck = self.follower.recheck, set()
        received = read_clock()
        there = {thing.uid: thing for thing in self.things.values()}
        known = self.follower.known
        found = [there.get(uid) or replace(known[uid], is_gone=True) for uid in sorted(uids)]
        self.follower.take(found, received)

    def find_orphans(self) -> None:
        due = due_orphans(self.cluster_id, older_than=timedelta(seconds=10))
        for resource, namespace in due:
            started, present = read_clock(), [thing.uid for thing in self.things.values()]
            release_missing(self.cluster_id, resource, namespace, present, list_started=started)

    def drain(self) -> None:
        self.take()
        while self.position < len(self.log):
            self.read()
            self.take()

    # How it is played and judged.

    def play(self) -> None:
        """One random event; then nothing that exists may be uncharged."""
        acts = (
            *(self.create, self.create, self.create, self.wait, self.wait, self.ask_again),
            *(self.update, self.update, self.update, self.resize_twice, self.finish, self.delete),
            *(self.end_request, self.end_request, self.end_request, self.end_request, self.touch),
            *(self.read, self.read, self.take, self.take, self.repeat, self.lose_events),
            *(self.restart, self.full_pass, self.full_pass, self.recheck, self.find_orphans),
        )
        act = self.dice.choice(acts)
        self.told.append(act.__name__)
        act()
        self.check()

    def come_to_rest(self) -> None:
        """Everything that is under way ends, and the follower learns of all of it."""
        while self.under_way:
            self._end(self.under_way[0], is_refused=self.dice.random() < 0.3)
        self.drain()
        self.wait(70)
        self.recheck()
        self.find_orphans()
        self.check()
        # The safety net: a full pass.
        self.restart()
        self.check()

    def check(self) -> None:
        """No limit is exceeded, and each object is charged at least what it uses."""
        held: dict[tuple[UUID, str], dict[str, Quantity]] = {
            (quota_uid, uid): parse(amounts)
            for quota_uid, uid, amounts in Charge.objects.exclude(state="released").values_list(
                "quota_uid", "object_uid", "amounts"
            )
        }
        for quota, hard in HARD.items():
            usages = [thing.usage(quota) for thing in self.things.values()]
            for name, limit in hard.items():
                assert total_of(name, usages) <= limit, (quota, name)
        for thing in self.things.values():
            for quota, quota_uid in self.follower.uids.items():
                charged = held.get((quota_uid, thing.uid), {})
                for name, amount in quantities(thing.usage(quota)).items():
                    assert charged.get(name, ZERO) >= amount, (quota, thing)

    def used_in_cluster(self) -> dict[UUID, dict[str, Quantity]]:
        """What the objects use, by quota uid."""
        sums = {}
        for quota, hard in HARD.items():
            usages = [thing.usage(quota) for thing in self.things.values()]
            sums[self.follower.uids[quota]] = quantities(
                {name: total_of(name, usages) for name in hard}
            )
        return sums

    def _ask(self, request: UnderWay) -> None:
        if self._decide(request):
            self.under_way.append(request)
            self._check_room()

    def _check_room(self) -> None:
        """What exists and what was admitted fits: nobody was given another's room."""
        for quota, hard in HARD.items():
            usages = [thing.usage(quota) for thing in self.things.values()]
            # Of several requests for one object only one is stored: the others see a conflict.
            growth: dict[str, Amounts] = defaultdict(dict)
            for one in filter(self._may_be_stored, self.under_way):
                most = growth[one.thing.uid]
                for name, amount in one.growth(quota).items():
                    most[name] = max(amount, most.get(name, 0))
            for name, limit in hard.items():
                assert total_of(name, [*usages, *growth.values()]) <= limit, (quota, name)

    def _may_be_stored(self, request: UnderWay) -> bool:
        there = self.things.get(request.thing.name)
        return there is None if request.old is None else there == request.old

    @transaction.atomic
    def _decide(self, request: UnderWay) -> bool:
        key = (self.cluster_id, PODS, request.thing.uid)
        book = open_book(self.ids.values(), [key], grown=self.ids.values())
        if not all(self._has_room(book, quota, request) for quota in HARD):
            return False
        for quota, quota_id in self.ids.items():
            growth, whole = request.growth(quota), request.thing.usage(quota)
            if any(growth.values()):
                decided = DecidedCharge(
                    quota=REF, delta=quantities(growth), amounts=quantities(whole)
                )
                book.charge(quota_id, key, name=request.thing.name, decided=decided, decision="D")
        book.write()
        return True

    def _has_room(self, book: Book, quota: str, request: UnderWay) -> bool:
        before = quantities(request.old.usage(quota) if request.old else {})
        used = book.used(self.ids[quota], (self.cluster_id, PODS, request.thing.uid), before)
        return all(
            used[name] + more <= Quantity.from_int(HARD[quota][name])
            for name, more in quantities(request.growth(quota)).items()
            if more.sign
        )

    def _end(self, request: UnderWay, *, is_refused: bool) -> None:
        self.under_way.remove(request)
        if not is_refused and self._may_be_stored(request):
            self._store(request.thing)

    def _store(self, thing: Thing) -> None:
        stored = replace(thing, version=len(self.log) + 1)
        self.things[stored.name] = stored
        self.log.append(stored)


def total_of(name: str, usages: list[Amounts]) -> int:
    return sum(usage.get(name, 0) for usage in usages)


def used_in_ledger() -> dict[UUID, dict[str, Quantity]]:
    """What the ledger says is used, by quota uid."""
    found = QuotaUsage.objects.values_list("quota_uid", "used")
    return {quota_uid: parse(used) for quota_uid, used in found}
