"""Changes as of an instant: the stage of a roll-out in force, and the change that came just after.

What a change was about to do, its rows say; when it did it, its steps and stages.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from policies import roles
from policies.change_sets.states import StepKind
from policies.models import ChangeItem, ChangeStep, RolloutStage

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from policies.models import ChangeSet

JUST: Final = timedelta(minutes=5)
"""How long before a change an instant is just before it."""
_WRITING: Final = (StepKind.PUBLISH, StepKind.PUBLISH_NOW, StepKind.START, StepKind.REVERT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageThen:
    """Where a roll-out stood in a namespace: the last stage that it had begun there.

    ``began`` is None where none of its ``waves`` had begun; ``at_wave`` is the one that was open.
    """

    change: ChangeSet
    waves: Sequence[int]
    at_wave: int
    wave: int = 0
    mode: str = ""
    began: dt.datetime | None = None


def stages_at(cluster: str, namespace: str, instant: dt.datetime) -> list[StageThen]:
    """The roll-outs that were under way and covered a namespace, by change; two queries."""
    waves: dict[int, set[int]] = defaultdict(set)
    items = ChangeItem.objects.filter(cluster=cluster, namespace=namespace, wave__gte=1)
    for change, wave in items.order_by().values_list("change_id", "wave").distinct():
        waves[change].add(wave or 0)
    begun = RolloutStage.objects.filter(rollout__change__in=waves, began__lte=instant)
    by_change: dict[int, list[RolloutStage]] = defaultdict(list)
    for stage in begun.select_related("rollout__change").order_by("rollout", "number"):
        by_change[stage.rollout.change_id].append(stage)
    return [
        _stage_then(stages, sorted(waves[change]))
        for change, stages in sorted(by_change.items())
        if stages[-1].ended is None or stages[-1].ended > instant
    ]


def _stage_then(stages: Sequence[RolloutStage], waves: Sequence[int]) -> StageThen:
    change, last = stages[-1].rollout.change, stages[-1]
    own = [each for each in stages if each.wave in waves]
    if not own:
        return StageThen(change=change, waves=waves, at_wave=last.wave)
    newest = own[-1]
    return StageThen(
        change=change,
        waves=waves,
        at_wave=last.wave,
        wave=newest.wave,
        mode=newest.mode,
        began=newest.began,
    )


def change_after(
    user: Any, instant: dt.datetime, *, cluster: str = "", namespace: str = ""
) -> ChangeSet | None:
    """The first change that was written just after an instant, in places that the user sees.

    Of a cluster or a namespace, where they are named; one query.
    """
    items = ChangeItem.objects.order_by()
    if cluster:
        items = items.filter(cluster=cluster)
    if namespace:
        items = items.filter(namespace=namespace)
    seen = roles.visible(items, user, cluster="cluster", namespace="namespace")
    steps = ChangeStep.objects.filter(
        step__in=_WRITING,
        created__gt=instant,
        created__lte=instant + JUST,
        change__in=seen.values("change"),
    )
    step = steps.select_related("change").order_by("created", "pk").first()
    return step.change if step else None
