"""``assign`` objects to the waves of a plan; the same every time, each object to one wave."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.change_sets.rollout.plan import RolloutPlan, WavePlan

_SHARES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlace:
    """A namespace of a cluster, with its labels."""

    cluster: str
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)


def assign(
    plan: RolloutPlan, places: Iterable[RolloutPlace], *, number: int
) -> dict[RolloutPlace, int]:
    """The wave of each place, counted from 1: the first one that covers it. 0: none does.

    ``number`` is that of the change, so that another change begins with other namespaces. Per cent
    add up: a second wave of 50 % after one of 10 % takes the 40 % between them.
    """
    return {
        place: next(
            (
                index
                for index, wave in enumerate(plan.waves, start=1)
                if _covers(wave, place, number)
            ),
            0,
        )
        for place in places
    }


def _covers(wave: WavePlan, place: RolloutPlace, number: int) -> bool:
    if wave.clusters and place.cluster not in wave.clusters:
        return False
    if wave.namespaces and not any(fnmatchcase(place.namespace, each) for each in wave.namespaces):
        return False
    if any(place.labels.get(name) != value for name, value in wave.labels.items()):
        return False
    return _share(place, number) < wave.percent * _SHARES // 100


def _share(place: RolloutPlace, number: int) -> int:
    """Where a place stands among all, from 0 to under 10,000; evenly, and always the same."""
    text = f"{number}/{place.cluster}/{place.namespace}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) % _SHARES
