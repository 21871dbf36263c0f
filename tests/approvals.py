"""Rules of approval and reviewers for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.models import ApprovalRule
from policies.services import changes
from tests.changes import AUTHOR, change_of, limit

if TYPE_CHECKING:
    from policies.models import ChangeSet


def rule(name: str = "four eyes", **terms: Any) -> ApprovalRule:
    """A rule that is in force; without terms one approver of each namespace."""
    return changes.save_rule(ApprovalRule(), user="root", terms={"name": name, **terms})


def in_review(cpu: str = "2", **terms: Any) -> ChangeSet:
    """A submitted change of team that waits, by a rule with these terms."""
    rule(**terms)
    return changes.submit(change_of(limit(cpu)), user=AUTHOR)


def approved_by(change: ChangeSet, user: Any) -> ChangeSet:
    """The change after an approval of its content."""
    change.refresh_from_db()
    return changes.approve(change, user=user, seen=change.content_hash)
