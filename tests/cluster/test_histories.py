"""The same random histories on two API servers: one with its plugins, one with the portal's ledger.

``HISTORY_SEEDS`` sets how many are played; each is fixed by its number. The portal learns of the
second cluster by passes here, so that each step waits until both know what there is.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from engine.quantity import Quantity
from tests.cluster.api_client import ApiClient, path_of
from tests.cluster.ledger_setup import CONTROLLER, ledger_setup, quota
from tests.cluster.servers import Options, cluster
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.api_client import Answer
    from tests.cluster.binaries import Binaries

pytestmark = pytest.mark.cluster

SEEDS: Final = int(os.environ.get("HISTORY_SEEDS", "3"))
STEPS: Final = 24
HARD: Final = {"pods": "3", "requests.cpu": "6"}
NAMES: Final = ("web", "db", "job", "cache")
EXCEEDED: Final = re.compile(r"exceeded quota: .*?limited: [\w.=,/]+")
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
        found["status"]["phase"] = "Succeeded"
        return self.api.replace(found, namespace, sub="status")


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


@pytest.fixture(scope="module")
def ours(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The cluster has no quota: the portal alone counts."""
    folder: Path = tmp_path_factory.mktemp("histories")
    quotas = [quota(place_of(seed), **HARD) for seed in range(SEEDS)]
    class_of_none = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "of-none"},
        "value": 1,
    }
    with ledger_setup(binaries, folder, quotas, [class_of_none]) as place:
        latest: dict[str, dict[str, str]] = {}

        def look() -> None:
            latest.update(place.run_pass(aged=True).used)

        def settle(namespace: str, wanted: dict[str, Quantity]) -> None:
            def is_even() -> bool:
                look()
                return as_amounts(latest[namespace]) == wanted

            # A list without most of the objects is believed when it is seen once more.
            wait_for(is_even)

        yield Side(place.api, lambda namespace: as_amounts(latest[namespace]), settle)


def place_of(seed: int) -> str:
    return f"history-{seed}"


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
        assert said(theirs) == said(mine), name
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

    def settle(self) -> None:
        for side in self.sides:
            side.settle(self.namespace, used_by(self.cpus))

    def step(self, dice: random.Random) -> None:
        act = dice.choice(("create", "create", "create", "delete", "finish"))
        # The plugin gives back what a taken name was charged only minutes later.
        free = sorted({*NAMES} - self.there)
        if act == "create" and free:
            self.create(dice.choice(free), dice.randint(1, 4))
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
    for name in sorted(history.there):
        history.delete(name)
    history.settle()
    for name in NAMES:
        history.create(name, 4)
    assert history.there == {NAMES[0]}
