"""ApprovalsMissingError of a change, ApprovalRequiredError of a save without one.

ApprovalRefusedError of one approval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.change_sets.approvals.needs import Need


class ApprovalsMissingError(Exception):
    """A change needs more than it has; nothing was written."""

    def __init__(self, needs: Sequence[Need]) -> None:
        super().__init__("; ".join(dict.fromkeys(need.words for need in needs)))
        self.needs = tuple(needs)


class ApprovalRequiredError(ValidationError):
    """A save that no change stands behind needs what only a change can have; nothing was written.

    Its code is ``approval_required``.
    """

    def __init__(self, needs: Sequence[Need]) -> None:
        words = "; ".join(dict.fromkeys(need.words for need in needs))
        message = f"rules of approval stand in the way: {words}. Add it to a change"
        super().__init__(message, code="approval_required")
        self.needs = tuple(needs)


class ApprovalRefusedError(Exception):
    """A user may not approve or review; ``code`` says why.

    It is ``own_change``, ``no_role``, or what is the case already.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def own_change() -> ApprovalRefusedError:
    """Whoever wrote a change does not approve it."""
    message = "you wrote a part of this change: somebody else has to approve it"
    return ApprovalRefusedError("own_change", message)
