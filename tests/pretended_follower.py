"""A follower as the product's: Things it knows, events and lists that it passes to the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from engine.quantity import Quantity
from policies.ledger.live_objects import CompleteList, LiveObject, apply_list
from policies.ledger.observed import SeenObject, take_in
from policies.ledger.release import confirm_seen, release_orphans

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from policies.ledger.live_objects import LedgerChanges

PODS: Final = "pods"
NAMESPACE: Final = "team"
HARD: Final = {"all": {"pods": 4, "requests.cpu": 8}, "fast": {"requests.cpu": 4}}
Amounts = dict[str, int]


@dataclass(frozen=True)
class Thing:
    """An object; ``is_fast`` puts it into the second quota's scope."""

    uid: str
    name: str
    cpu: int
    is_fast: bool
    version: int = 0
    is_finished: bool = False
    is_gone: bool = False

    def usage(self, quota: str) -> Amounts:
        """What a quota counts of it."""
        if self.is_finished or self.is_gone or (quota == "fast" and not self.is_fast):
            return {}
        amounts = {"pods": 1, "requests.cpu": self.cpu}
        return {name: amount for name, amount in amounts.items() if name in HARD[quota] and amount}


@dataclass
class Follower:
    """What the follower of the cluster knows: it is lost when it is restarted."""

    cluster_id: int
    uids: dict[str, UUID]
    known: dict[str, Thing] = field(default_factory=dict)
    recheck: set[str] = field(default_factory=set)

    def seen(self, thing: Thing) -> SeenObject:
        return SeenObject(
            uid=thing.uid,
            name=thing.name,
            namespace=NAMESPACE,
            counted=self.counted(thing),
            is_gone=thing.is_gone,
            is_final=thing.is_finished,
        )

    def counted(self, thing: Thing) -> dict[UUID, dict[str, Quantity]]:
        return {
            uid: quantities(usage)
            for quota, uid in self.uids.items()
            if (usage := thing.usage(quota))
        }

    def take(self, things: list[Thing], received: datetime) -> None:
        """Pass on what is not older than what is known."""
        news = []
        for thing in things:
            earlier = self.known.get(thing.uid)
            if earlier is None or not (earlier.is_gone or earlier.version > thing.version):
                self.known[thing.uid] = thing
                news.append(self.seen(thing))
        self.note(take_in(self.cluster_id, PODS, news, received=received))

    def note(self, changes: LedgerChanges) -> None:
        self.recheck |= changes.recheck.keys()

    def take_list(self, things: list[Thing], received: datetime) -> None:
        """After a gap: what is known and not on the list is gone."""
        there = {thing.uid for thing in things}
        lost = [replace(one, is_gone=True) for uid, one in self.known.items() if uid not in there]
        self.take([*things, *lost], received)

    def begin(self, things: list[Thing], received: datetime) -> None:
        """After a restart: nothing is known but the ledger itself."""
        self.known = {thing.uid: thing for thing in things}
        self.compare(things, received)

    def compare(self, things: list[Thing], received: datetime) -> None:
        """A full pass, which other processes make as well."""
        live = {
            thing.uid: LiveObject(
                name=thing.name,
                namespace=NAMESPACE,
                counted=self.counted(thing),
                is_final=thing.is_finished,
            )
            for thing in things
        }
        complete = CompleteList(
            cluster_id=self.cluster_id,
            resource=PODS,
            started=received,
            objects=live,
            places=dict.fromkeys(self.uids.values(), NAMESPACE),
            names={uid: tuple(HARD[quota]) for quota, uid in self.uids.items()},
        )
        release_orphans("prod", list_started=received, seen=live)
        apply_list(complete, believe=True)
        confirm_seen("prod", resource=PODS, seen=live)


def quantities(amounts: Amounts) -> dict[str, Quantity]:
    return {name: Quantity.from_int(amount) for name, amount in amounts.items()}
