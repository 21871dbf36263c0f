"""Random quantities: few values, so that bounds are often met exactly, in many spellings."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from engine.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

Room = dict[str, tuple[int, int]]
"""The minimum and maximum amount by resource, in billionths."""
DEVICE: Final = "vendor.io/fpga"
PAGES: Final = "hugepages-2Mi"
UNIT: Final = 10**9
_CPU: Final = tuple(
    "0 50m 0.05 100m .1 1e-1 0.25 250m 250.000m 300m 500m .5 5e-1 0.6 600m 1 1000m +1 1. 1.0 1e0 "
    "1100m 1.5 1500m 2 2000m 2.000 2E0 4 4e0 10 100u 1001n".split()
)
_BYTES: Final = tuple(
    "0 1 1k 1e3 1Ki 1500m 64Mi 1e8 100Mi 104857600 128Mi 0.125Gi 250Mi 256Mi .25Gi 0.25Gi 256000Ki "
    "500Mi 512Mi 0.5Gi .5Gi 0.1Gi 1Gi 1024Mi 1G 1e9 1E3 1000M 1.5Gi 1536Mi 2Gi 2048Mi 2G 4Gi "
    "1234567890 1.5e9".split()
)
_COUNTS: Final = ("0", "1", "1.0", "1e0", "2", "2000m", "3", "4", "+5", "1e1", "10")
_HUGE: Final = ("2Mi", "2048Ki", "2097152", "4Mi", "4.0Mi", "6Mi", "8Mi", "0.0078125Gi", "16Mi")
_BEYOND: Final = ("10P", "1E", "12E", "9223372036854775808", "8Ei")
"""Amounts that releases up to 1.36 cannot represent: their differences are counted separately."""
_BARE: Final = (1, 2, 4)
_SIZES: Final = {
    "": UNIT,
    "m": 10**6,
    "k": 10**12,
    "M": 10**15,
    "e3": 10**12,
    "Ki": 1024 * UNIT,
    "Mi": 1024**2 * UNIT,
    "Gi": 1024**3 * UNIT,
}
_FINE: Final = {"u": 1000, "n": 1}


def _pool(name: str) -> tuple[str, ...]:
    if "hugepages" in name:
        return _HUGE
    if "cpu" in name:
        return _CPU
    if "memory" in name or "storage" in name.rpartition("/")[2]:
        return _BYTES
    return _COUNTS


def value(text: Any) -> int:
    """The value of a spelling, in billionths."""
    return Quantity.parse(str(text)).nano


@lru_cache
def _sorted(pool: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(pool, key=value))


def spell(random: Random, nano: int) -> str:
    """Write an amount exactly, in one of several spellings.

    Never an exponent that only an API server accepts: ``10e-1`` reaches webhooks as ``1``.
    """
    for sizes in (_SIZES, _FINE):
        fitting = [f"{nano // size}{suffix}" for suffix, size in sizes.items() if not nano % size]
        if fitting:
            return random.choice(fitting)
    raise AssertionError(nano)


class Amounts:
    """Draws quantities for a resource by its name, within ``room`` if given."""

    def __init__(self, random: Random, room: Mapping[str, tuple[int, int]] | None = None) -> None:
        self._random, self._room = random, room

    def one(self, name: str) -> Any:
        """Any amount; now and then a bare number, or an absurdly large one."""
        if self._room is not None:
            return self._within(name, self._room)
        chance = self._random.random()
        if chance < 0.004:
            return self._random.choice(_BEYOND)
        if chance < 0.009:
            return "-1"
        if chance < 0.05 and _pool(name) is not _HUGE:
            return self._random.choice(_BARE)
        return self._random.choice(_pool(name))

    def _within(self, name: str, room: Mapping[str, tuple[int, int]]) -> str:
        """An amount that no single policy refuses: one of the pool, or the minimum."""
        pool = _sorted(_pool(name))
        low, high = room.get(name, (value(pool[0]), value(pool[len(pool) * 2 // 3])))
        fitting = [text for text in pool if low <= value(text) <= high]
        return self._random.choice(fitting) if fitting else spell(self._random, max(low, 0))

    def ordered(self, name: str, count: int) -> list[Any]:
        """That many amounts in ascending order."""
        return sorted((self.one(name) for _ in range(count)), key=value)

    def bounds(self, name: str) -> list[Any]:
        """A minimum, two defaults and a maximum that leave room for most amounts between them."""
        pool = _sorted(_pool(name))
        low, high = pool[: len(pool) // 3], pool[-len(pool) // 3 :]
        least = "-1" if self._random.random() < 0.02 else self._random.choice(low)
        return [least, *self.ordered(name, 2), self._random.choice(high)]

    def account(self, name: str) -> tuple[Any, Any]:
        """A quota's limit and its used amount: all, all but one, some, or too much."""
        random, pool = self._random, _sorted(_pool(name))
        used = "0" if random.random() < 0.5 else random.choice(pool[: len(pool) * 2 // 3])
        used = "0" if is_count(name) and value(used) % UNIT else used
        if is_count(name):
            many = (1, 1, 2, 2, 3, 5, 10) if "pods" in name else (0, 0, 1, 1, 2, 3, 4)
            left = random.choice((0, *many)) * UNIT
        else:
            half = len(pool) // 2
            left = value(random.choice(pool[half:] if random.random() < 0.8 else pool[:half]))
        if random.random() < 0.03 and value(used) > UNIT:
            left = -UNIT
        return spell(random, value(used) + left), used


def is_count(name: str) -> bool:
    """Whether a resource is counted in whole units."""
    return _pool(name) is _COUNTS


def draw_list(
    random: Random, room: Mapping[str, tuple[int, int]] | None = None
) -> dict[str, dict[str, Any]]:
    """A container's resources: any part may be missing, limits are mostly no less than requests.

    Within ``room``, cpu and memory always have limits, because quotas require them.
    """
    amounts = Amounts(random, room)
    found: dict[str, dict[str, Any]] = {}
    known = room or {}
    has_disk = "ephemeral-storage" in known or random.random() < 0.4
    for name in ("cpu", "memory", *(["ephemeral-storage"] if has_disk else [])):
        request, limit = amounts.ordered(name, 2)
        if room is not None:
            request = random.choice((request, limit, limit))
        elif random.random() < 0.03:
            request, limit = limit, request
        sides = {"requests": request, "limits": limit}
        for side in _draw_sides(random, is_modest=room is not None):
            found.setdefault(side, {})[name] = sides[side]
    for name, share in ((DEVICE, 0.12), (PAGES, 0.08)):
        if random.random() < (0.8 if name in known else share):
            found.setdefault("limits", {})[name] = amounts.one(name)
    return found


def _draw_sides(random: Random, *, is_modest: bool) -> tuple[str, ...]:
    """The sides of its resources that a container specifies."""
    both = ("requests", "limits")
    if is_modest:
        return random.choice((("limits",), both, both))
    return random.choice(((), ("requests",), ("limits",), *[both] * 5))
