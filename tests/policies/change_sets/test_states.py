"""The state machine of change sets: every pair of a state and a step."""

from __future__ import annotations

from itertools import product

import pytest

from policies.change_sets.states import (
    ChangeState,
    StepKind,
    StepRefusedError,
    state_after,
    steps_from,
)

ALLOWED = """
    draft        edit             draft
    draft        describe         draft
    draft        comment          draft
    draft        submit           in_review
    draft        publish_now      done
    draft        abandon          abandoned
    in_review    edit             draft
    in_review    describe         in_review
    in_review    comment          in_review
    in_review    withdraw         draft
    in_review    approve          in_review
    in_review    pass             approved
    in_review    publish_now      done
    in_review    request_changes  draft
    in_review    abandon          abandoned
    approved     edit             draft
    approved     describe         approved
    approved     comment          approved
    approved     withdraw         draft
    approved     approve          approved
    approved     request_changes  draft
    approved     publish_now      done
    approved     publish          done
    approved     start            rolling_out
    approved     abandon          abandoned
    rolling_out  comment          rolling_out
    rolling_out  finish           done
    rolling_out  stop             stopped
    rolling_out  revert           reverted
    done         comment          done
    done         revert           reverted
    done         review           done
    stopped      comment          stopped
    stopped      resume           rolling_out
    stopped      revert           reverted
    reverted     comment          reverted
    reverted     review           reverted
    abandoned    comment          abandoned
"""
TABLE = {tuple(line.split()[:2]): line.split()[2] for line in ALLOWED.split("\n") if line.strip()}


@pytest.mark.parametrize(("state", "step"), list(product(ChangeState, StepKind)))
def test_every_state_has_the_steps_of_the_table_and_no_others(
    state: ChangeState, step: StepKind
) -> None:
    wanted = TABLE.get((state.value, step.value))
    assert (step in steps_from(state)) == (wanted is not None)
    if wanted is not None:
        assert state_after(state, step) == wanted
        return
    with pytest.raises(StepRefusedError, match=state.words) as caught:
        state_after(state, step)
    assert (caught.value.state, caught.value.step) == (state, step)


def test_every_state_is_reached_from_a_draft() -> None:
    reached, new = set(), {ChangeState.DRAFT}
    while new:
        reached |= new
        new = {state_after(state, step) for state in new for step in steps_from(state)} - reached
    assert reached == set(ChangeState)
