"""``next_move`` of a roll-out: wait, advance, trip or finish. Pure: the same inputs, one move."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from policies.change_sets.rollout.guards import tripped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from policies.change_sets.rollout.guards import GuardReading


class Move(StrEnum):
    """What is to be done with a roll-out now."""

    WAIT = "wait"
    ADVANCE = "advance"
    TRIP = "trip"
    FINISH = "finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutState:
    """Where a roll-out stands: its stage, and when this one ends; None: it is paused."""

    at: int
    total: int
    ends: datetime | None


def next_move(state: RolloutState, now: datetime, readings: Sequence[GuardReading]) -> Move:
    """The move that is due. A guard that trips comes before everything, also in a pause."""
    if tripped(readings):
        return Move.TRIP
    if state.ends is None or now < state.ends:
        return Move.WAIT
    return Move.FINISH if state.at >= state.total else Move.ADVANCE
