"""Random quantities: few values, so that bounds are often met exactly, in many spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies.engine.quantity import Quantity

if TYPE_CHECKING:
    from random import Random

_CPU: Final = (
    "0 50m 0.05 100m .1 0.25 250m 250.000m 300m 500m .5 0.6 600m 1 1000m +1 1. 1.0 1e0 1100m 1.5 "
    "1500m 2 2000m 2.000 4 4e0 10 100u 1001n"
).split()
_BYTES: Final = (
    "0 1 1k 1500m 100Mi 104857600 128Mi 0.125Gi 250Mi 256Mi 0.25Gi 256000Ki 500Mi 512Mi 0.5Gi "
    "0.1Gi 1Gi 1024Mi 1G 1e9 1E3 1000M 1.5Gi 1536Mi 2Gi 2048Mi 2G 4Gi 1234567890 1.5e9"
).split()
_COUNTS: Final = ("0", "1", "1.0", "2", "2000m", "3", "4", "+5", "1e1", "10")
_BEYOND: Final = ("10P", "1E", "12E", "9223372036854775808", "8Ei")
"""Where releases up to 1.36 lose count: what comes of these is counted apart."""
_BARE: Final = (1, 2, 4)


def _pool(name: str) -> tuple[str, ...] | list[str]:
    if "cpu" in name:
        return _CPU
    if "memory" in name or "storage" in name:
        return _COUNTS if "persistentvolumeclaims" in name else _BYTES
    return _COUNTS


def value(text: Any) -> int:
    """What a spelling amounts to, in billionths."""
    return Quantity.parse(str(text)).nano


class Amounts:
    """Draws quantities for a resource by its name."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def one(self, name: str) -> Any:
        """Any amount; now and then a bare number, or one beyond all reason."""
        chance = self._random.random()
        if chance < 0.004:
            return self._random.choice(_BEYOND)
        if chance < 0.05:
            return self._random.choice(_BARE)
        return self._random.choice(_pool(name))

    def ordered(self, name: str, count: int) -> list[Any]:
        """As many, none smaller than the one before."""
        return sorted((self.one(name) for _ in range(count)), key=value)

    def bounds(self, name: str) -> list[Any]:
        """A minimum, two defaults and a maximum that leave most amounts room between them."""
        pool = sorted(_pool(name), key=value)
        low, high = pool[: len(pool) // 3], pool[-len(pool) // 3 :]
        return [self._random.choice(low), *self.ordered(name, 2), self._random.choice(high)]

    def large(self, name: str) -> tuple[Any, Any]:
        """A request and a limit, both far above what containers ask for."""
        return self._random.choice((("12", "16"), ("20", "40"))) if name == "cpu" else ("32Gi",) * 2

    def hard(self, name: str) -> Any:
        """A quota's limit; whole where only whole ones are taken."""
        if self._is_count(name):
            return self._random.choice(("0", "1", "2", "3", "5", "10", "1e1", 4))
        return self._random.choice(_pool(name)[len(_pool(name)) // 2 :])

    def used(self, name: str) -> Any:
        """What a quota has given away: often nothing."""
        if self._random.random() < 0.6:
            return "0"
        if self._is_count(name):
            return self._random.choice(("0", "1", "2", "4", "9"))
        return self._random.choice(_pool(name))

    @staticmethod
    def _is_count(name: str) -> bool:
        return _pool(name) is _COUNTS


def draw_list(random: Random) -> dict[str, dict[str, Any]]:
    """A container's resources: any part may be missing, limits are mostly no less than requests."""
    amounts = Amounts(random)
    found: dict[str, dict[str, Any]] = {}
    for name in ("cpu", "memory", "ephemeral-storage"):
        request, limit = amounts.ordered(name, 2)
        if random.random() < 0.03:
            request, limit = limit, request
        part = random.choice(("none", "request", "limit", *["both"] * 5))
        if name == "ephemeral-storage" and random.random() < 0.7:
            continue
        if part in {"request", "both"}:
            found.setdefault("requests", {})[name] = request
        if part in {"limit", "both"}:
            found.setdefault("limits", {})[name] = limit
    if random.random() < 0.12:
        count = random.choice(("0", "1", "2", "4"))
        found.setdefault("limits", {})["vendor.io/fpga"] = count
    return found
