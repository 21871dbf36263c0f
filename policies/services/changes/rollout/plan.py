"""``put_plan`` of a change set; ``place_items`` in its waves, and keep them when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from policies.change_sets.rollout.modes import unobservable
from policies.change_sets.rollout.plan import plan_json
from policies.change_sets.rollout.waves import RolloutPlace, assign
from policies.change_sets.states import StepKind
from policies.models import ChangeItem, Namespace, Rollout
from policies.services.changes.refusals import ItemProblem, ItemsRefusedError
from policies.services.changes.steps import lock, record_step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.change_sets.rollout.plan import RolloutPlan
    from policies.models import ChangeSet


def put_plan(change: ChangeSet, *, plan: RolloutPlan, user: str) -> Rollout:
    """Store how a change is to be rolled out, on record; until it is started.

    Raises StepRefusedError for a change that is written already.
    """
    with transaction.atomic():
        locked = lock(change, step=StepKind.DESCRIBE)
        rollout, _ = Rollout.objects.update_or_create(
            change=locked, defaults={"plan": plan_json(plan), "total": len(plan.stages)}
        )
        record_step(locked, StepKind.DESCRIBE, user=user, note="roll-out")
    return rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedItem:
    """An object of a change in a wave, counted from 1; 0: in none. What keeps it from starting."""

    item: ChangeItem
    wave: int
    problem: ItemProblem | None


def place_items(items: Sequence[ChangeItem], *, plan: RolloutPlan, number: int) -> list[PlacedItem]:
    """The wave of each object of the change of this number; one query."""
    labels = _labels_of(items)
    places = {
        item.pk: RolloutPlace(
            cluster=item.cluster,
            namespace=item.namespace,
            labels=labels.get((item.cluster, item.namespace), {}),
        )
        for item in items
    }
    waves = assign(plan, places.values(), number=number)
    placed = []
    for item in items:
        wave = waves[places[item.pk]]
        problem = _problem(item, plan, wave)
        placed.append(PlacedItem(item=item, wave=wave, problem=problem))
    return placed


def assign_items(locked: ChangeSet, plan: RolloutPlan) -> None:
    """Note the wave of each object: whatever becomes of its namespace, it has that one.

    Raises ItemsRefusedError with each object that no wave covers, or that may not be observed.
    """
    placed = place_items(list(locked.items.all()), plan=plan, number=locked.pk)
    if problems := [each.problem for each in placed if each.problem]:
        raise ItemsRefusedError(problems)
    for each in placed:
        each.item.wave = each.wave
    ChangeItem.objects.bulk_update([each.item for each in placed], ["wave"])


def _labels_of(items: Sequence[ChangeItem]) -> dict[tuple[str, str], Mapping[str, str]]:
    rows = Namespace.objects.filter(
        cluster__name__in={item.cluster for item in items},
        name__in={item.namespace for item in items},
    ).values_list("cluster__name", "name", "labels")
    return {(cluster, name): labels or {} for cluster, name, labels in rows}


def _problem(item: ChangeItem, plan: RolloutPlan, wave: int) -> ItemProblem | None:
    code, message = "in_no_wave", "no wave of the plan covers it"
    if wave:
        is_observed = len(plan.waves[wave - 1].stages) > 1
        code, message = "not_observed", unobservable(item.to_content()) if is_observed else ""
    if not message:
        return None
    return ItemProblem(cluster=item.cluster, key=item.key, code=code, message=message)
