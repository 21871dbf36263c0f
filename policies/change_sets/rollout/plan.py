"""``RolloutPlan``: waves with their places and stages, and guards; ``read_plan``, ``plan_json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.policy import Enforcement
from policies.change_sets.rollout.members import PlanError, PlanReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_WAVES: Final = 20
MOST_GUARDS: Final = 20
LONGEST_DWELL: Final = 30 * 24 * 3600
"""Seconds; a stage that lasts longer is a forgotten one."""
MODE_ORDER: Final = (Enforcement.AUDIT, Enforcement.WARN, Enforcement.ENFORCE)
_MOST_NAMES: Final = 100
_HIGHEST: Final = 1_000_000_000


class GuardKind(StrEnum):
    """What a guard watches in the places that a roll-out has reached."""

    DENIALS_PER_OWNER = "denials_per_owner"
    WARNINGS_PER_OWNER = "warnings_per_owner"
    DENIALS_OF = "denials_of"
    DENY_RATE = "deny_rate"
    LATENCY = "latency"
    FAILURES = "failures"


class OnTrip(StrEnum):
    """What a guard that trips does."""

    STOP = "stop"
    REVERT = "revert"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """A mode of a wave, and the seconds it lasts; ``enforce`` stands for the policy as proposed."""

    mode: Enforcement
    dwell: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlan:
    """Where a wave goes, and its stages; what is empty stands for all. The last one enforces.

    ``namespaces`` are names, with ``*`` for any characters; ``percent`` selects by a stable hash.
    """

    stages: tuple[StagePlan, ...]
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    percent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPlan:
    """A guard that trips above a threshold; ``owners`` are the workloads of ``denials_of``."""

    kind: GuardKind
    above: float
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """Waves in their order, guards, and what one that trips does."""

    waves: tuple[WavePlan, ...]
    guards: tuple[GuardPlan, ...] = ()
    on_trip: OnTrip = OnTrip.STOP

    @property
    def stages(self) -> tuple[tuple[int, StagePlan], ...]:
        """All stages in their order, each with the number of its wave, counted from 1."""
        return tuple(
            (number, stage)
            for number, wave in enumerate(self.waves, start=1)
            for stage in wave.stages
        )


def plan_json(plan: RolloutPlan) -> dict[str, Any]:
    """The plan as JSON, as it is stored and sent."""
    return {
        "waves": [
            {
                "clusters": list(wave.clusters),
                "namespaces": list(wave.namespaces),
                "labels": dict(wave.labels),
                "percent": wave.percent,
                "stages": [{"mode": each.mode.value, "dwell": each.dwell} for each in wave.stages],
            }
            for wave in plan.waves
        ],
        "guards": [
            {"kind": each.kind.value, "above": each.above, "owners": list(each.owners)}
            for each in plan.guards
        ],
        "on_trip": plan.on_trip.value,
    }


def read_plan(raw: object) -> RolloutPlan:
    """Read a plan; raises PlanError with every member that is wrong."""
    reader = PlanReader()
    members = reader.members(raw, "", ("waves", "guards", "on_trip"))
    waves = [
        _wave(reader, each, f"waves[{index}]")
        for index, each in enumerate(reader.items(members, "waves", "", most=MOST_WAVES))
    ]
    guards = [
        _guard(reader, each, f"guards[{index}]")
        for index, each in enumerate(reader.items(members, "guards", "", most=MOST_GUARDS))
    ]
    on_trip = reader.choice(members, "on_trip", "", OnTrip, default=OnTrip.STOP)
    if not waves and not reader.problems:
        reader.refuse("waves", "required", "must have at least one wave")
    if reader.problems:
        raise PlanError(reader.problems)
    return RolloutPlan(waves=tuple(waves), guards=tuple(guards), on_trip=on_trip)


def _wave(reader: PlanReader, raw: object, path: str) -> WavePlan:
    known = ("clusters", "namespaces", "labels", "percent", "stages")
    members = reader.members(raw, path, known)
    found = len(reader.problems)
    stages = [
        _stage(reader, each, f"{path}.stages[{index}]")
        for index, each in enumerate(
            reader.items(members, "stages", path, most=len(MODE_ORDER), default=[{}])
        )
    ]
    # A stage that could not be read stands for another: its order says nothing.
    if len(reader.problems) == found:
        for code, message in _order_problems(stages):
            reader.refuse(f"{path}.stages", code, message)
    return WavePlan(
        clusters=reader.names(members, "clusters", path, most=_MOST_NAMES),
        namespaces=reader.names(members, "namespaces", path, most=_MOST_NAMES),
        labels=reader.labels(members, "labels", path, most=_MOST_NAMES),
        percent=reader.whole(members, "percent", path, bounds=(1, 100), default=100),
        stages=tuple(stages),
    )


def _stage(reader: PlanReader, raw: object, path: str) -> StagePlan:
    members = reader.members(raw, path, ("mode", "dwell"))
    return StagePlan(
        mode=reader.choice(members, "mode", path, Enforcement, default=Enforcement.ENFORCE),
        dwell=reader.whole(members, "dwell", path, bounds=(0, LONGEST_DWELL), default=0),
    )


def _order_problems(stages: list[StagePlan]) -> Iterator[tuple[str, str]]:
    modes = [MODE_ORDER.index(stage.mode) for stage in stages]
    if modes != sorted(set(modes)):
        yield "wrong_order", "must be in the order audit, warn, enforce, each once"
    elif not modes or MODE_ORDER[modes[-1]] is not Enforcement.ENFORCE:
        yield "not_enforced", "must end with enforce: a roll-out publishes what was proposed"


def _guard(reader: PlanReader, raw: object, path: str) -> GuardPlan:
    members = reader.members(raw, path, ("kind", "above", "owners"))
    found = len(reader.problems)
    kind = reader.choice(members, "kind", path, GuardKind, default=None)
    highest = 100 if kind is GuardKind.DENY_RATE else _HIGHEST
    owners = reader.names(members, "owners", path, most=_MOST_NAMES)
    # A kind that could not be read stands for another: it says nothing of workloads.
    is_known = len(reader.problems) == found
    if is_known and kind is GuardKind.DENIALS_OF and not owners:
        reader.refuse(f"{path}.owners", "required", "must name the workloads")
    if is_known and kind is not GuardKind.DENIALS_OF and owners:
        reader.refuse(f"{path}.owners", "not_allowed", "is for denials_of alone")
    return GuardPlan(
        kind=kind,
        above=reader.number(members, "above", path, highest=highest, default=0),
        owners=owners,
    )
