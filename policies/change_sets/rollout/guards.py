"""``judge_guards`` on the figures of a stage: each guard with its figure, and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from policies.change_sets.rollout.plan import GuardKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policies.change_sets.rollout.plan import GuardPlan

_COUNTS: Final = (GuardKind.DENIALS_OF, GuardKind.FAILURES)
"""Guards whose figure grows with each decision that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFigures:
    """What was decided since a stage began, in the places that the roll-out has reached.

    ``new_denials`` and ``new_warnings`` are those of each owner beyond its own in as long a time
    before; ``denials`` are all. ``latency`` is the 99th percentile in milliseconds. Where
    ``is_sampled``, there were more than may be read: these are of the newest.
    """

    requests: int = 0
    denied: int = 0
    warned: int = 0
    failures: int = 0
    latency: float = 0.0
    denials: Mapping[str, int] = field(default_factory=dict)
    new_denials: Mapping[str, int] = field(default_factory=dict)
    new_warnings: Mapping[str, int] = field(default_factory=dict)
    is_sampled: bool = False

    @property
    def deny_rate(self) -> float:
        """Denied requests in per cent of all."""
        return 100 * self.denied / self.requests if self.requests else 0.0

    @property
    def newly_denied(self) -> list[tuple[str, int]]:
        """The owners with new denials, those with the most first."""
        found = [(owner, number) for owner, number in self.new_denials.items() if number > 0]
        return sorted(found, key=lambda each: (-each[1], each[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardReading:
    """A guard, its figure, and the owner that it comes from.

    Where ``is_sampled``, only the newest decisions were read: a count is at least so high.
    """

    guard: GuardPlan
    figure: float
    owner: str = ""
    is_sampled: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure is not above the threshold."""
        return self.figure <= self.guard.above

    @property
    def name(self) -> str:
        """What is watched, in words."""
        return guard_words(self.guard)

    @property
    def words(self) -> str:
        """The figure and the threshold."""
        of_owner = f" ({self.owner})" if self.owner else ""
        figure, above = amount(self.guard, self.figure), amount(self.guard, self.guard.above)
        return f"{self._before}{figure}{of_owner}{self._after}, stops above {above}"

    @property
    def _before(self) -> str:
        return "at least " if self.is_sampled and self.guard.kind in _COUNTS else ""

    @property
    def _after(self) -> str:
        return " of the newest" if self.is_sampled and self.guard.kind not in _COUNTS else ""

    def __str__(self) -> str:
        return f"{self.name}: {self.words}"


def guard_words(guard: GuardPlan) -> str:
    """What a guard watches, in words."""
    match guard.kind:
        case GuardKind.DENIALS_PER_OWNER:
            return "New denials per owner"
        case GuardKind.WARNINGS_PER_OWNER:
            return "New warnings per owner"
        case GuardKind.DENIALS_OF:
            return f"Denials of {', '.join(guard.owners)}"
        case GuardKind.DENY_RATE:
            return "Denied requests"
        case GuardKind.LATENCY:
            return "Response time, p99"
        case GuardKind.FAILURES:
            return "Failures"


def amount(guard: GuardPlan, figure: float) -> str:
    """A figure with the unit of its guard."""
    units = {GuardKind.DENY_RATE: " %", GuardKind.LATENCY: " ms"}
    return f"{round(figure, 1):g}{units.get(guard.kind, '')}"


def judge_guards(guards: Iterable[GuardPlan], figures: RolloutFigures) -> list[GuardReading]:
    """Read each guard."""
    readings = (_reading(guard, figures) for guard in guards)
    return [replace(reading, is_sampled=figures.is_sampled) for reading in readings]


def tripped(readings: Sequence[GuardReading]) -> list[GuardReading]:
    """The guards that do not hold."""
    return [reading for reading in readings if not reading.holds]


def _reading(guard: GuardPlan, figures: RolloutFigures) -> GuardReading:
    match guard.kind:
        case GuardKind.DENIALS_PER_OWNER:
            return _highest(guard, figures.new_denials)
        case GuardKind.WARNINGS_PER_OWNER:
            return _highest(guard, figures.new_warnings)
        case GuardKind.DENIALS_OF:
            named = {name: figures.denials.get(name, 0) for name in guard.owners}
            return GuardReading(
                guard=guard, figure=sum(named.values()), owner=_name_of_highest(named)
            )
        case GuardKind.DENY_RATE:
            return GuardReading(guard=guard, figure=figures.deny_rate)
        case GuardKind.LATENCY:
            return GuardReading(guard=guard, figure=figures.latency)
        case GuardKind.FAILURES:
            return GuardReading(guard=guard, figure=figures.failures)


def _highest(guard: GuardPlan, by_owner: Mapping[str, int]) -> GuardReading:
    owner = _name_of_highest(by_owner)
    return GuardReading(guard=guard, figure=by_owner.get(owner, 0), owner=owner)


def _name_of_highest(by_owner: Mapping[str, int]) -> str:
    """The owner with the most, if it has any; of equal ones the first by name."""
    owner = min(by_owner, key=lambda name: (-by_owner[name], name), default="")
    return owner if by_owner.get(owner, 0) > 0 else ""
