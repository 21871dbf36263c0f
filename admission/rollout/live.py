"""A roll-out as it goes: figures of its stages as a reader sees them, guards, bars over time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count
from django.db.models.functions import TruncHour, TruncMinute

from admission.models import AuditEvent
from admission.models.tally import column_of, stretch_of, with_hits
from admission.record.search import histogram
from admission.rollout.figures import MOST, figures_between, figures_of, places_of
from policies import roles
from policies.change_sets.rollout.guards import judge_guards
from policies.change_sets.states import ChangeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from admission.models import AuditEventQuerySet
    from admission.record.search.histogram import Bar
    from policies.change_sets.rollout.guards import GuardReading, RolloutFigures
    from policies.models import ChangeItem, Rollout, RolloutStage

STAGES_READ: Final = 8
"""So many stages, the newest that have begun, have figures."""
_BEFORE: Final = timedelta(minutes=10)
"""Bars begin so long before the roll-out at least."""
_UNDER_WAY: Final = (ChangeState.ROLLING_OUT, ChangeState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """What was decided in the namespaces of a stage's wave, from its beginning to its end."""

    stage: RolloutStage
    namespaces: int
    figures: RolloutFigures


def stage_figures(
    rollout: Rollout, *, items: Iterable[ChangeItem], user: Any, now: datetime
) -> list[StageFigures]:
    """The newest stages that have begun, in their order; five queries each.

    ``items`` are those that the user sees: nothing is counted elsewhere.
    """
    decisions = _visible(user)
    by_wave: dict[int, set[tuple[str, str]]] = {}
    for item in items:
        by_wave.setdefault(item.wave or 0, set()).add((item.cluster, item.namespace))
    begun = list(rollout.stages.order_by("-number")[:STAGES_READ])
    found = []
    for stage in reversed(begun):
        pairs = by_wave.get(stage.wave, set())
        if pairs:
            of_wave = decisions.filter(places_of(pairs))
            figures = figures_between(of_wave, stage.began, stage.ended or now)
            found.append(StageFigures(stage=stage, namespaces=len(pairs), figures=figures))
    return found


def guard_readings(rollout: Rollout, *, now: datetime) -> list[GuardReading]:
    """The guards with their figures in all places, while it is under way."""
    if rollout.change.stands not in _UNDER_WAY:
        return []
    return judge_guards(rollout.to_plan().guards, figures_of(rollout, now=now))


def rollout_bars(
    rollout: Rollout, *, items: Iterable[ChangeItem], user: Any, now: datetime
) -> Sequence[Bar]:
    """Decisions over time in the places of the waves that have begun; two queries.

    From some time before the first stage on; of more than ``MOST`` decisions the newest.
    """
    stages = list(rollout.stages.all())
    waves = {stage.wave for stage in stages}
    pairs = {(item.cluster, item.namespace) for item in items if item.wave in waves}
    if not pairs:
        return []
    until = stages[-1].ended or now
    since = stages[0].began - max((until - stages[0].began) / 4, _BEFORE)
    decisions = _visible(user).filter(places_of(pairs)).between(since, until)
    for oldest in decisions.newest_first().values_list("created", flat=True)[MOST : MOST + 1]:
        since = oldest
    step = histogram.bar_step(until - since)
    sums: dict[datetime, Counter[str]] = {}
    for start, column, number in _counted(decisions.between(since, until), step):
        sums.setdefault(stretch_of(start, step), Counter())[column] += number
    # The query of a bar would show decisions of all places.
    return [replace(bar, query="") for bar in histogram.bars_of(sums, (since, until, step), {})]


def _visible(user: Any) -> AuditEventQuerySet:
    """The decisions that a user sees, but for dry runs."""
    decisions = AuditEvent.objects.charged()
    return roles.visible(decisions, user, cluster="cluster", namespace="namespace")


def _counted(decisions: AuditEventQuerySet, step: timedelta) -> Iterator[tuple[datetime, str, int]]:
    """How many had which outcome in each minute or hour; a query that fetches sums."""
    cut = TruncHour if step >= timedelta(hours=1) else TruncMinute
    rows = with_hits(decisions.order_by()).annotate(start=cut("created", tzinfo=UTC))
    grouped = rows.values_list("start", "verdict", "has_hits").annotate(Count("id"))
    for start, verdict, has_hits, number in grouped:
        yield start, column_of(verdict, "hit" if has_hits else ""), number
