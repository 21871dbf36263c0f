"""Approvals of changes: rules, checks, who gave which, emergencies. No HTTP, no pages."""

from policies.services.changes.approvals.direct import require_no_change
from policies.services.changes.approvals.emergency import publish_now, review
from policies.services.changes.approvals.evaluate import ChangeStanding, standing_of
from policies.services.changes.approvals.give import (
    approve,
    has_approved,
    request_changes,
    submit,
)
from policies.services.changes.approvals.looks import SinceLook, look
from policies.services.changes.approvals.own_checks import proposed_sets_of
from policies.services.changes.approvals.permissions import (
    RULING,
    may_approve,
    may_publish_now,
    may_review,
    sees_rules,
    who_wrote,
)
from policies.services.changes.approvals.refusals import (
    ApprovalRefusedError,
    ApprovalRequiredError,
    ApprovalsMissingError,
)
from policies.services.changes.approvals.rules import (
    FOUR_EYES,
    RED_TESTS_BLOCK,
    add_preset,
    delete_rule,
    move_rule,
    save_rule,
)
from policies.services.changes.approvals.shown import (
    ShownCheck,
    ShownNeed,
    ShownReview,
    shown_review,
)
from policies.services.changes.approvals.worker_checks import (
    run_checks,
    store_result,
    waiting_checks,
)

__all__ = [
    "FOUR_EYES",
    "RED_TESTS_BLOCK",
    "RULING",
    "ApprovalRefusedError",
    "ApprovalRequiredError",
    "ApprovalsMissingError",
    "ChangeStanding",
    "ShownCheck",
    "ShownNeed",
    "ShownReview",
    "SinceLook",
    "add_preset",
    "approve",
    "delete_rule",
    "has_approved",
    "look",
    "may_approve",
    "may_publish_now",
    "may_review",
    "move_rule",
    "proposed_sets_of",
    "publish_now",
    "request_changes",
    "require_no_change",
    "review",
    "run_checks",
    "save_rule",
    "sees_rules",
    "shown_review",
    "standing_of",
    "store_result",
    "submit",
    "waiting_checks",
    "who_wrote",
]
