"""ReviewCards of an unpublished change: who approves it, its checks; a reviewer's steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.services import changes
from portal.pages.changes.sets.people import NamedPerson, people_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.models import ChangeSet
    from policies.services.changes import ShownReview

REVIEWING: Final = frozenset({"approve", "requestchanges", "runchecks", "publishnow", "review"})
DONE_WORDS: Final = {
    "approve": "Approved.",
    "requestchanges": "It is a draft again, with what you ask for.",
    "runchecks": "Checked again. A worker counts requests and running pods in a moment.",
    "publishnow": "Published without approvals. It is flagged until somebody else reviews it.",
    "review": "Reviewed: the flag is gone.",
}


@dataclass(frozen=True, slots=True)
class GivenLine:
    """An approval, whose it is, and whether it counts."""

    person: NamedPerson
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCards:
    """What the cards Approvals and Checks show."""

    review: ShownReview
    given: Sequence[GivenLine]


def review_cards(change: ChangeSet, user: Any) -> ReviewCards | None:
    """The cards; None for a change that is over."""
    if "submit" not in change.steps_allowed and "publish_now" not in change.steps_allowed:
        return None
    review = changes.shown_review(change, user=user)
    people = people_of(each.user for each in review.approvals)
    return ReviewCards(
        review=review,
        given=[GivenLine(people[each.user], each.counts) for each in review.approvals],
    )


def may_take(change: ChangeSet, user: Any, verb: str) -> bool:
    """Whether the user may take a reviewer's step; those of approvals say themselves why not."""
    if verb == "publishnow":
        return changes.may_publish_now(user, change)
    if verb == "runchecks":
        return changes.may_steer(user, change) or changes.may_approve(user, change)
    return True


def take_step(change: ChangeSet, *, user: Any, verb: str, seen: str, note: str) -> None:
    """Take a reviewer's step; raises what the services raise."""
    if verb == "approve":
        changes.approve(change, user=user, seen=seen or change.content_hash)
    elif verb == "requestchanges":
        changes.request_changes(change, user=user, note=note)
    elif verb == "runchecks":
        changes.run_checks(change, user=user.get_username())
    elif verb == "publishnow":
        changes.publish_now(change, user=user.get_username(), reason=note, seen=seen)
    else:
        changes.review(change, user=user, note=note)
