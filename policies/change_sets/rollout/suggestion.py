"""``suggest_plan``: a plan to begin with, for a change that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.policy import Enforcement
from policies.change_sets.rollout.plan import GuardKind, GuardPlan, RolloutPlan, StagePlan, WavePlan

if TYPE_CHECKING:
    from collections.abc import Collection

    from policies.change_sets.rollout.waves import RolloutPlace

FEW: Final = 10
"""Of fewer namespaces the first wave takes one by its name: a tenth of them may be none."""
_TENTH: Final = 10
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR


def suggest_plan(places: Collection[RolloutPlace], *, may_observe: bool) -> RolloutPlan:
    """First one namespace or a tenth of them, then all; what may be observed is observed first."""
    stages = [StagePlan(mode=Enforcement.ENFORCE, dwell=2 * _HOUR)]
    if may_observe:
        stages.insert(0, StagePlan(mode=Enforcement.AUDIT, dwell=_DAY))
    everywhere = WavePlan(stages=tuple(stages))
    names = sorted({place.namespace for place in places})
    waves = [everywhere]
    if len(names) >= FEW:
        waves.insert(0, WavePlan(stages=everywhere.stages, percent=_TENTH))
    elif len(names) > 1:
        waves.insert(0, WavePlan(stages=everywhere.stages, namespaces=(names[0],)))
    guards = (
        GuardPlan(kind=GuardKind.DENIALS_PER_OWNER, above=2),
        GuardPlan(kind=GuardKind.FAILURES, above=0),
    )
    return RolloutPlan(waves=tuple(waves), guards=guards)
