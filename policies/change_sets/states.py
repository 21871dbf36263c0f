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
    PASS = "pass"  # noqa: S105 - no secret: the last thing that a rule asked for is there
    REQUEST_CHANGES = "request_changes"
    PUBLISH = "publish"
    PUBLISH_NOW = "publish_now"
    REVIEW = "review"
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
    # One of several perhaps; what was approved may need another one, by a rule made since.
    StepKind.APPROVE: {_REVIEWED: _REVIEWED, _APPROVED: _APPROVED},
    StepKind.PASS: {_REVIEWED: _APPROVED},
    StepKind.REQUEST_CHANGES: dict.fromkeys((_REVIEWED, _APPROVED), _DRAFT),
    StepKind.PUBLISH: {_APPROVED: _DONE},
    # In an emergency, without approvals; somebody else reviews it afterwards.
    StepKind.PUBLISH_NOW: dict.fromkeys(_UNPUBLISHED, _DONE),
    StepKind.REVIEW: {state: state for state in (_DONE, ChangeState.REVERTED)},
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
