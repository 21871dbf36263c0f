"""``RolloutShown``: stages with their figures, guards, a chart, owners that are newly denied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from admission.rollout.live import guard_readings, rollout_bars, stage_figures
from policies.change_sets.rollout.dwell import dwell_words
from policies.change_sets.states import ChangeState
from policies.db.clock import read_clock
from policies.services import changes
from policies.services.changes.rollout import TRIPPED_ELSEWHERE
from portal.pages.changes.sets.rollout.chart import chart_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from admission.rollout.live import StageFigures
    from policies.change_sets.rollout.guards import GuardReading
    from policies.change_sets.rollout.plan import RolloutPlan, WavePlan
    from policies.models import ChangeItem, Rollout, RolloutStage
    from policies.services.changes import ItemGroup
    from portal.pages.changes.sets.rollout.chart import RolloutChart

OWNERS_SHOWN: Final = 12
PLACES_NAMED: Final = 3
_SECONDS: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLine:
    """A stage of the plan, and what became of it; ``begun`` None: it is still to come."""

    number: int
    wave: int
    where: str
    mode: str
    dwell: str
    is_now: bool
    begun: RolloutStage | None
    found: StageFigures | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedOwner:
    """An owner with new denials in a stage, and the query that shows them."""

    stage: RolloutStage
    namespace: str
    name: str
    number: int
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutShown:
    """A roll-out as one reader sees it."""

    lines: Sequence[StageLine]
    readings: Sequence[GuardReading]
    tripped: str
    chart: RolloutChart | None = None
    owners: Sequence[DeniedOwner] = field(default_factory=list)

    @property
    def is_sampled(self) -> bool:
        """Whether the figures of a stage are of the newest decisions alone."""
        return any(line.found.figures.is_sampled for line in self.lines if line.found)

    @property
    def trips(self) -> bool:
        """Whether a guard does not hold."""
        return any(not reading.holds for reading in self.readings)


def shown_rollout(
    rollout: Rollout, *, items: Sequence[ChangeItem], groups: Sequence[ItemGroup], user: Any
) -> RolloutShown:
    """Read the figures; names that the plan and guards have are for those who may see them."""
    now, plan = read_clock(), rollout.to_plan()
    found = stage_figures(rollout, items=items, user=user, now=now)
    bars = rollout_bars(rollout, items=items, user=user, now=now)
    sees_all = changes.sees_rollout(user, rollout.change, groups=groups)
    where = [_selectors(wave) for wave in plan.waves]
    if not sees_all:
        where = [_seen(number, items) for number in range(1, len(plan.waves) + 1)]
    return RolloutShown(
        lines=list(_lines(rollout, plan, where, found)),
        readings=readings_of(rollout, groups=groups, user=user, now=now),
        tripped=tripped_words(rollout, sees_all=sees_all),
        chart=chart_of(bars, [each.stage for each in found]),
        owners=list(_owners(found, now))[:OWNERS_SHOWN],
    )


def readings_of(
    rollout: Rollout, *, groups: Iterable[ItemGroup], user: Any, now: datetime
) -> Sequence[GuardReading]:
    """The guards with their figures, for those who see all places."""
    return guard_readings(rollout, now=now) if changes.sees_places(user, groups) else []


def tripped_words(rollout: Rollout, *, sees_all: bool) -> str:
    """Why it stopped by itself; empty if it did not."""
    return rollout.tripped if sees_all or not rollout.tripped else TRIPPED_ELSEWHERE


def _lines(
    rollout: Rollout, plan: RolloutPlan, where: Sequence[str], found: Sequence[StageFigures]
) -> Iterator[StageLine]:
    begun = {stage.number: stage for stage in rollout.stages.all()}
    figures = {each.stage.number: each for each in found}
    is_running = rollout.change.stands is ChangeState.ROLLING_OUT
    for number, (wave, stage) in enumerate(plan.stages, start=1):
        yield StageLine(
            number=number,
            wave=wave,
            where=where[wave - 1],
            mode=stage.mode.value,
            dwell=dwell_words(stage.dwell),
            is_now=is_running and number == rollout.at,
            begun=begun.get(number),
            found=figures.get(number),
        )


def _selectors(wave: WavePlan) -> str:
    """Where a wave goes, as it was planned."""
    labels = [f"{name}={value}" for name, value in wave.labels.items()]
    percent = [f"{wave.percent} %"] if wave.percent < 100 else []  # noqa: PLR2004 - all of them
    return ", ".join([*wave.clusters, *wave.namespaces, *labels, *percent]) or "all places"


def _seen(wave: int, items: Sequence[ChangeItem]) -> str:
    """The places of a wave that a reader of a part sees; the plan may name others."""
    names = sorted({f"{each.cluster} / {each.namespace}" for each in items if each.wave == wave})
    more = [f"{len(names) - PLACES_NAMED} more"] if len(names) > PLACES_NAMED else []
    return ", ".join([*names[:PLACES_NAMED], *more]) or "places that you do not see"


def _owners(found: Sequence[StageFigures], now: datetime) -> Iterator[DeniedOwner]:
    """Those of the newest stage first."""
    for each in reversed(found):
        times = {
            "since": f"{each.stage.began:{_SECONDS}}",
            "until": f"{each.stage.ended or now:{_SECONDS}}",
        }
        for owner, number in each.figures.newly_denied:
            namespace, _, name = owner.partition("/")
            query = {"verdict": "denied", "namespace": namespace, "name": name, **times}
            yield DeniedOwner(
                stage=each.stage, namespace=namespace, name=name, number=number, query=query
            )
