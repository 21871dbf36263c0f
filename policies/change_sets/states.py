"""The states of a change set, and the steps between them: ``state_after``, ``steps_from``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class ChangeState(StrEnum):
    """Where a change set stands."""

    DRAFT = "draft"
    IN_REVIEW = "in_review"
    APPROVED = "approved"
    ROLLING_OUT = "rolling_out"
    DONE = "done"
    STOPPED = "stopped"
    REVERTED = "reverted"
    ABANDONED = "abandoned"

    @property
    def words(self) -> str:
        """The state as a person reads it."""
        return self.value.replace("_", " ")


class StepKind(StrEnum):
    """What moves a change set, or is said of it."""

    EDIT = "edit"
    DESCRIBE = "describe"
    COMMENT = "comment"
    SUBMIT = "submit"
    WITHDRAW = "withdraw"
    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"
    PUBLISH = "publish"
    START = "start"
    FINISH = "finish"
    STOP = "stop"
    RESUME = "resume"
    REVERT = "revert"
    ABANDON = "abandon"


STATES: Final = [state.value for state in ChangeState]
STEPS: Final = [step.value for step in StepKind]
_DRAFT, _REVIEWED, _APPROVED = ChangeState.DRAFT, ChangeState.IN_REVIEW, ChangeState.APPROVED
_ROLLING, _DONE, _STOPPED = ChangeState.ROLLING_OUT, ChangeState.DONE, ChangeState.STOPPED
_UNPUBLISHED: Final = (_DRAFT, _REVIEWED, _APPROVED)
_TRANSITIONS: Final[Mapping[StepKind, Mapping[ChangeState, ChangeState]]] = {
    # Whatever was reviewed or approved was another content: the author submits the new one.
    StepKind.EDIT: dict.fromkeys(_UNPUBLISHED, _DRAFT),
    StepKind.DESCRIBE: {state: state for state in _UNPUBLISHED},
    StepKind.COMMENT: {state: state for state in ChangeState},
    StepKind.SUBMIT: {_DRAFT: _REVIEWED},
    StepKind.WITHDRAW: dict.fromkeys((_REVIEWED, _APPROVED), _DRAFT),
    StepKind.APPROVE: {_REVIEWED: _APPROVED},
    StepKind.REQUEST_CHANGES: dict.fromkeys((_REVIEWED, _APPROVED), _DRAFT),
    StepKind.PUBLISH: {_APPROVED: _DONE},
    StepKind.START: {_APPROVED: _ROLLING},
    StepKind.FINISH: {_ROLLING: _DONE},
    StepKind.STOP: {_ROLLING: _STOPPED},
    StepKind.RESUME: {_STOPPED: _ROLLING},
    StepKind.REVERT: dict.fromkeys((_ROLLING, _STOPPED, _DONE), ChangeState.REVERTED),
    StepKind.ABANDON: dict.fromkeys(_UNPUBLISHED, ChangeState.ABANDONED),
}


class StepRefusedError(Exception):
    """A step that the state of the change set does not allow."""

    def __init__(self, state: ChangeState, step: StepKind) -> None:
        step_words = step.value.replace("_", " ")
        super().__init__(f"the change is {state.words}: it has no step {step_words}")
        self.state = state
        self.step = step


def state_after(state: ChangeState, step: StepKind) -> ChangeState:
    """The state to which a step leads; raises StepRefusedError."""
    next_state = _TRANSITIONS[step].get(state)
    if next_state is None:
        raise StepRefusedError(state, step)
    return next_state


def steps_from(state: ChangeState) -> tuple[StepKind, ...]:
    """The steps that a state allows."""
    return tuple(step for step, moves in _TRANSITIONS.items() if state in moves)
