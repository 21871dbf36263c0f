"""ApprovalsMissingError of a change that is not approved; ApprovalRefusedError of one approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.change_sets.approvals.needs import Need


class ApprovalsMissingError(Exception):
    """A change needs more than it has; nothing was written."""

    def __init__(self, needs: Sequence[Need]) -> None:
        super().__init__("; ".join(dict.fromkeys(need.words for need in needs)))
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
