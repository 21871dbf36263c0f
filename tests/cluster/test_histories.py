"""The same random histories on two API servers: one with its plugins, one with the portal instead.

``HISTORY_SEEDS`` sets how many are played; each is fixed by its number. Refusals say how much is
used, so that each step waits until both sides know what there is; other histories wait for nothing,
and nothing may exceed the limit in between.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from engine.quantity import Quantity
from tests.cluster.api_client import ApiClient, path_of
from tests.cluster.ledger_setup import CONTROLLER, quota
from tests.cluster.servers import Options, cluster
from tests.processes import children_of, running, wait_for, words_of
from tests.upstream.plane import control_plane
from tests.upstream.product import gatehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.api_client import Answer
    from tests.cluster.binaries import Binaries

pytestmark = [pytest.mark.cluster, pytest.mark.no_cover]

SEEDS: Final = int(os.environ.get("HISTORY_SEEDS", "3"))
STEPS: Final = 24
HANDS: Final = 3
"""Clients at once where nobody waits."""
RUSH: Final = 15.0
"""Seconds for which they go on; twice as long where another follower must first take over."""
LONGEST: Final = 120.0
"""Further seconds on a slow machine, until each has created enough."""
FEW: Final = 20
TAKEN: Final = 0.05
"""How many of their creates take a name that is there."""
HARD: Final = {"pods": "3", "requests.cpu": "6"}
NAMES: Final = ("web", "db", "job", "cache")
EXCEEDED: Final = re.compile(r"exceeded quota: .*?limited: [\w.=,/]+")
COUNTED: Final = """
SELECT 1 FROM policies_resourcequota JOIN policies_namespace AS place ON place.id = namespace_id
WHERE place.name = %s AND uncounted = '[]'
"""
CPUS = dict[str, int]
"""The CPU requests of pods that have not ended, by name."""


def pod(name: str, cpu: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def used_by(cpus: CPUS) -> dict[str, Quantity]:
    return {
        "pods": Quantity.from_int(len(cpus)),
        "requests.cpu": Quantity.from_int(sum(cpus.values())),
    }


def as_amounts(used: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in used.items()}


@dataclass
class Side:
    """One API server, and what its quota says; ``settle`` returns once that is up to date."""

    api: ApiClient
    used: Callable[[str], dict[str, Quantity]]
    settle: Callable[[str, dict[str, Quantity]], None]

    def create(self, namespace: str, name: str, cpu: int) -> Answer:
        return self.api.create(pod(name, cpu), namespace)

    def delete(self, namespace: str, name: str) -> Answer:
        return self.api.ask("DELETE", path_of("Pod", namespace, name), {"gracePeriodSeconds": 0})

    def finish(self, namespace: str, name: str) -> Answer:
        found = self.api.read("Pod", namespace, name).body
        found["status"] = {**found.get("status", {}), "phase": "Succeeded"}
        return self.api.replace(found, namespace, sub="status")

    def resize(self, namespace: str, name: str, cpu: int) -> Answer:
        found = self.api.read("Pod", namespace, name).body
        found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(cpu)
        return self.api.replace(found, namespace, sub="resize")

    def live(self, namespace: str) -> dict[str, Quantity]:
        """What the pods use that have not ended, all as they were at one moment."""
        cpus = {
            pod["metadata"]["name"]: int(
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            )
            for pod in self.api.read("Pod", namespace).body["items"]
            if pod["status"].get("phase") != "Succeeded"
        }
        return used_by(cpus)


@pytest.fixture(scope="module")
def native(binaries: Binaries) -> Iterator[Side]:
    """The API server's own plugin and controller count."""
    if binaries.controller_manager is None:
        pytest.skip("NO kube-controller-manager HERE: nothing is given back in the cluster")
    with (
        cluster(binaries, Options(controllers=(CONTROLLER,))) as made,
        contextlib.closing(ApiClient(made)) as api,
    ):

        def used(namespace: str) -> dict[str, Quantity]:
            status = api.read("ResourceQuota", namespace, namespace).body.get("status", {})
            return as_amounts(status.get("used", {}))

        def settle(namespace: str, wanted: dict[str, Quantity]) -> None:
            wait_for(lambda: used(namespace) == wanted)

        for seed in range(SEEDS):
            name = place_of(seed)
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            assert api.create(quota(name, **HARD), name).is_allowed
        for seed in range(SEEDS):
            settle(place_of(seed), used_by({}))
        yield Side(api, used, settle)


@dataclass
class PortalSide(Side):
    """The portal in the place of the plugins, with all its processes."""

    around: dict[str, str]
    stack: contextlib.ExitStack

    def replace_follower(self, log: Path) -> None:
        """Kill the follower, and begin another one."""
        [present] = [
            each for each in children_of(os.getpid()) if "manage.py follow" in words_of(each)
        ]
        os.kill(present, signal.SIGKILL)
        words = [sys.executable, "manage.py", "follow"]
        self.stack.enter_context(running(words, self.around, log))


@pytest.fixture(scope="module")
def ours(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortalSide]:
    """Both plugins are off: the portal alone counts."""
    if binaries.controller_manager is None:
        pytest.skip("NO kube-controller-manager HERE: namespaces have no accounts")
    logs: Path = tmp_path_factory.mktemp("logs")
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(control_plane(binaries, logs, plugins=False, resync="5m"))
        portal = stack.enter_context(gatehouse(plane, logs, "portal"))
        api = stack.enter_context(contextlib.closing(ApiClient(plane)))
        address = portal.around["GATEHOUSE_DATABASE_URL"]
        database = stack.enter_context(psycopg.connect(address, autocommit=True))

        def used(namespace: str) -> dict[str, Quantity]:
            query = "SELECT used FROM policies_quotausage WHERE namespace = %s"
            row = database.execute(query, [namespace]).fetchone()
            return as_amounts(row[0]) if row else {}

        def settle(namespace: str, wanted: dict[str, Quantity]) -> None:
            wait_for(lambda: used(namespace) == wanted)

        for seed in range(SEEDS):
            for name in (place_of(seed), rush_of(seed)):
                api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                assert api.create(quota(name, **HARD), name).is_allowed
        for seed in range(SEEDS):
            for name in (place_of(seed), rush_of(seed)):
                wait_for(lambda name=name: is_counted(database, name) and has_account(api, name))
        yield PortalSide(api, used, settle, portal.around, stack)


def is_counted(database: psycopg.Connection[Any], namespace: str) -> bool:
    """Whether the portal has the quota, and has counted it.

    Its status says nothing of that: the controller of the control plane writes it, too.
    """
    row = database.execute(COUNTED, [namespace]).fetchone()
    return row is not None


def has_account(api: ApiClient, namespace: str) -> bool:
    """Whether the account is there without which the API server refuses each pod."""
    return api.ask("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default").code == 200


def place_of(seed: int) -> str:
    return f"history-{seed}"


def rush_of(seed: int) -> str:
    return f"rush-{seed}"


def said(answer: Answer) -> str:
    """What a refusal says of the quota; both word it alike."""
    found = EXCEEDED.search(answer.message)
    return found[0] if found else f"{answer.code}"


@dataclass
class History:
    """What is there on both sides, and the pods that have not ended."""

    namespace: str
    sides: tuple[Side, Side]
    there: set[str] = field(default_factory=set)
    cpus: CPUS = field(default_factory=dict)

    def create(self, name: str, cpu: int) -> None:
        theirs, mine = (side.create(self.namespace, name, cpu) for side in self.sides)
        assert said(theirs) == said(mine), (name, theirs.message, mine.message)
        if theirs.is_allowed:
            self.there.add(name)
            self.cpus[name] = cpu

    def delete(self, name: str) -> None:
        self.finish(name, "delete")
        self.there.remove(name)

    def finish(self, name: str, act: str = "finish") -> None:
        for side in self.sides:
            assert getattr(side, act)(self.namespace, name).is_allowed
        self.cpus.pop(name, None)

    def resize(self, name: str, cpu: int) -> None:
        theirs, mine = (side.resize(self.namespace, name, cpu) for side in self.sides)
        assert said(theirs) == said(mine), (name, theirs.message, mine.message)
        if theirs.is_allowed:
            self.cpus[name] = cpu

    def settle(self) -> None:
        for side in self.sides:
            side.settle(self.namespace, used_by(self.cpus))

    def step(self, dice: random.Random) -> None:
        act = dice.choice(("create", "create", "create", "delete", "finish", "resize"))
        # The plugin gives back what a taken name was charged only minutes later.
        free = sorted({*NAMES} - self.there)
        if act == "create" and free:
            self.create(dice.choice(free), dice.randint(1, 4))
        elif act == "resize" and self.cpus:
            name = dice.choice(sorted(self.cpus))
            self.resize(name, dice.randint(self.cpus[name], 5))
        elif self.there:
            name = dice.choice(sorted(self.there))
            (self.finish if act == "finish" else self.delete)(name)
        self.settle()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_both_judge_alike(seed: int, native: Side, ours: Side) -> None:
    dice = random.Random(seed)  # noqa: S311 - to be repeatable
    history = History(place_of(seed), (native, ours))
    for _ in range(STEPS):
        history.step(dice)
    if larger := [name for name, cpu in history.cpus.items() if cpu > 1]:
        history.resize(min(larger), 1)
        history.settle()
    for name in sorted(history.there):
        history.delete(name)
    history.settle()
    for name in NAMES:
        history.create(name, 4)
    assert history.there == {NAMES[0]}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_exceeds_the_limit_while_nobody_waits(
    seed: int, ours: PortalSide, tmp_path: Path
) -> None:
    place, is_over = rush_of(seed), threading.Event()
    limit = as_amounts(HARD)
    is_killed = seed == 0
    deadline = time.monotonic() + (2 * RUSH if is_killed else RUSH)

    def watch() -> int:
        looks = 0
        while not is_over.is_set():
            found = ours.live(place)
            assert all(found[name] <= limit[name] for name in HARD), found
            looks += 1
        return looks

    with ThreadPoolExecutor(HANDS + 1) as threads:
        watched = threads.submit(watch)
        hands = [
            threads.submit(rush, ours, place, deadline, f"{seed}-{number}")
            for number in range(HANDS)
        ]
        try:
            if is_killed:
                ours.replace_follower(tmp_path / "follow.log")
            done = [hand.result() for hand in hands]
        finally:
            is_over.set()
        assert watched.result() > FEW
    assert sum(created for created, _ in done) > FEW
    assert sum(refused for _, refused in done) > 0
    ours.settle(place, ours.live(place))


def rush(side: Side, place: str, deadline: float, seed: str) -> tuple[int, int]:
    """Do something again and again; the numbers of creates that were allowed, and refused."""
    dice = random.Random(seed)  # noqa: S311 - to be repeatable
    created = refused = 0
    present: list[str] = []
    numbers = itertools.count()
    while (now := time.monotonic()) < deadline or (
        created <= FEW // HANDS and now < deadline + LONGEST
    ):
        act = dice.choice(("create", "create", "delete", "finish", "resize"))
        if act == "create" or not present:
            # A taken name is refused after us: its reservation is given back seconds later.
            name = (
                present[0] if present and dice.random() < TAKEN else f"pod-{seed}-{next(numbers)}"
            )
            answer = side.create(place, name, dice.randint(1, 4))
            if answer.is_allowed:
                created += 1
                present.append(name)
            refused += "exceeded quota" in answer.message
        elif act == "resize":
            side.resize(place, dice.choice(present), 2)
        else:
            name = present.pop(dice.randrange(len(present)))
            assert getattr(side, act)(place, name).is_allowed
    return created, refused
