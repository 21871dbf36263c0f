"""``go_on`` with a roll-out: judge its guards, and make the move that is due."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from admission.rollout.figures import figures_of
from policies.change_sets.rollout.guards import judge_guards, tripped
from policies.change_sets.rollout.moves import Move, RolloutState, next_move
from policies.change_sets.rollout.plan import OnTrip
from policies.change_sets.states import ChangeState, StepRefusedError
from policies.db.clock import read_clock
from policies.models import Rollout
from policies.services.changes import ItemsRefusedError
from policies.services.changes import rollout as rollouts

if TYPE_CHECKING:
    from policies.change_sets.rollout.guards import GuardReading

log = logging.getLogger(__name__)
_LONGEST: Final = 2000


def running() -> list[int]:
    """The roll-outs that are under way."""
    rows = Rollout.objects.filter(change__state=ChangeState.ROLLING_OUT.value)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def go_on(pk: int) -> Move:
    """Make the move that is due; safe to repeat, to kill, and to run several times at once."""
    rollout = Rollout.objects.select_related("change").get(pk=pk)
    now = read_clock()
    readings = judge_guards(rollout.to_plan().guards, figures_of(rollout, now=now))
    state = RolloutState(at=rollout.at, total=rollout.total, ends=rollout.ends)
    move = next_move(state, now, readings)
    try:
        _make(move, rollout, readings)
    except StepRefusedError:
        log.info("%s was moved by somebody else", rollout)
        return Move.WAIT
    return move


def _make(move: Move, rollout: Rollout, readings: list[GuardReading]) -> None:
    change, starter = rollout.change, rollout.starter
    if move is Move.TRIP:
        words = "; ".join(map(str, tripped(readings)))[:_LONGEST]
        reverts = rollout.to_plan().on_trip is OnTrip.REVERT
        rollouts.trip(change, user=starter, words=words, reverts=reverts)
        log.warning("rollout-tripped: %s, started by %s: %s", rollout, starter, words)
    elif move is not Move.WAIT:
        try:
            rollouts.advance(change, expected=rollout.at)
        except ItemsRefusedError as error:
            words = f"the next stage cannot be written: {error}"[:_LONGEST]
            rollouts.stop(change, user=starter, tripped=words)
            log.warning("rollout-stopped: %s, started by %s: %s", rollout, starter, words)
