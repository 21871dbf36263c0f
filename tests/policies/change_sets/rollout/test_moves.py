"""The next move follows from the stage, the time and the guards alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.change_sets.rollout.guards import GuardReading
from policies.change_sets.rollout.moves import Move, RolloutState, next_move
from policies.change_sets.rollout.plan import GuardKind, GuardPlan

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
GUARD = GuardPlan(kind=GuardKind.FAILURES, above=0)


@pytest.mark.parametrize(
    ("at", "ends", "move"),
    [
        (1, NOW + SECOND, Move.WAIT),
        (1, NOW, Move.ADVANCE),
        (1, NOW - SECOND, Move.ADVANCE),
        (2, NOW + SECOND, Move.WAIT),
        (2, NOW, Move.FINISH),
        (2, None, Move.WAIT),
    ],
)
def test_a_stage_lasts_until_it_ends(at: int, ends: datetime | None, move: Move) -> None:
    reading = GuardReading(guard=GUARD, figure=0)
    assert next_move(RolloutState(at=at, total=2, ends=ends), NOW, [reading]) is move


@given(
    st.integers(1, 3),
    st.none() | st.integers(-9, 9).map(lambda each: NOW + each * SECOND),
)
def test_a_guard_that_trips_comes_before_all_else(at: int, ends: datetime | None) -> None:
    state = RolloutState(at=at, total=3, ends=ends)
    assert next_move(state, NOW, [GuardReading(guard=GUARD, figure=1)]) is Move.TRIP
