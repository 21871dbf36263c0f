"""``TypedPlan``: the rows of a plan's form as they were typed, and rows added, moved, taken out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from engine.policy import Enforcement
from policies.change_sets.rollout.dwell import dwell_text
from policies.change_sets.rollout.plan import MODE_ORDER, MOST_GUARDS, MOST_WAVES, OnTrip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from policies.change_sets.rollout.plan import GuardPlan, RolloutPlan, WavePlan

    Row = Mapping[str, str]
    Rows = tuple[Row, ...]

WAVE_FIELDS: Final = ("clusters", "namespaces", "labels", "percent", "audit", "warn", "enforce")
GUARD_FIELDS: Final = ("kind", "above", "owners")
_NEW_WAVE: Final = {"percent": "100", "enforce": "1h"}
_NEW_GUARD: Final = {"kind": "failures", "above": "0"}
_WHOLE: Final = 3
"""Digits of a row's number that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPlan:
    """Texts by field for each wave and each guard, in their order."""

    waves: Rows = ()
    guards: Rows = ()
    on_trip: str = OnTrip.STOP.value

    def after(self, verb: str, rest: str) -> TypedPlan:
        """The rows after one of the buttons in ``FORM_VERBS``; a row that is not there stays so."""
        at = int(rest) if rest.isdecimal() and len(rest) <= _WHOLE else -1
        return FORM_VERBS[verb](self, at)


def typed_of(plan: RolloutPlan) -> TypedPlan:
    """The rows of a plan."""
    return TypedPlan(
        waves=tuple(_wave(each) for each in plan.waves),
        guards=tuple(_guard(each) for each in plan.guards),
        on_trip=plan.on_trip.value,
    )


def typed_from(sent: Mapping[str, str]) -> TypedPlan:
    """The rows that a browser sent."""
    return TypedPlan(
        waves=_rows(sent, "wave", WAVE_FIELDS, most=MOST_WAVES),
        guards=_rows(sent, "guard", GUARD_FIELDS, most=MOST_GUARDS),
        on_trip=sent.get("on_trip", OnTrip.STOP.value),
    )


def _rows(sent: Mapping[str, str], name: str, fields: tuple[str, ...], *, most: int) -> Rows:
    """The rows up to the first that has no field."""
    rows = []
    for index in range(most):
        prefix = f"{name}-{index}-"
        if not any(f"{prefix}{field}" in sent for field in fields):
            break
        rows.append({field: sent.get(f"{prefix}{field}", "") for field in fields})
    return tuple(rows)


def _wave(wave: WavePlan) -> Row:
    dwells = {stage.mode: dwell_text(stage.dwell) for stage in wave.stages}
    return {
        "clusters": " ".join(wave.clusters),
        "namespaces": " ".join(wave.namespaces),
        "labels": " ".join(f"{name}={value}" for name, value in wave.labels.items()),
        "percent": str(wave.percent),
        **{mode.value: dwells.get(mode, "") for mode in MODE_ORDER},
    }


def _guard(guard: GuardPlan) -> Row:
    return {
        "kind": guard.kind.value,
        "above": f"{guard.above:.15g}",
        "owners": " ".join(guard.owners),
    }


def _without(rows: Rows, at: int) -> Rows:
    return tuple(row for index, row in enumerate(rows) if index != at)


def _moved(rows: Rows, at: int, to: int) -> Rows:
    if not (0 <= at < len(rows) and 0 <= to < len(rows)):
        return rows
    rest = _without(rows, at)
    return (*rest[:to], rows[at], *rest[to:])


FORM_VERBS: Final[Mapping[str, Callable[[TypedPlan, int], TypedPlan]]] = {
    "addwave": lambda typed, _: replace(typed, waves=(*typed.waves, _NEW_WAVE)[:MOST_WAVES]),
    "dropwave": lambda typed, at: replace(typed, waves=_without(typed.waves, at)),
    "upwave": lambda typed, at: replace(typed, waves=_moved(typed.waves, at, at - 1)),
    "downwave": lambda typed, at: replace(typed, waves=_moved(typed.waves, at, at + 1)),
    "addguard": lambda typed, _: replace(typed, guards=(*typed.guards, _NEW_GUARD)[:MOST_GUARDS]),
    "dropguard": lambda typed, at: replace(typed, guards=_without(typed.guards, at)),
    "preview": lambda typed, _: typed,
}
"""Buttons that change the form alone."""
OBSERVED: Final = (Enforcement.AUDIT.value, Enforcement.WARN.value)
"""Fields of stages in which nothing is refused yet."""
