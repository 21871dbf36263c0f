"""``shown_review``: what a change needs and has, as far as one reader may see its places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies import roles
from policies.models import ChangeCheck
from policies.services.changes.approvals.evaluate import standing_of
from policies.services.changes.approvals.permissions import places_of

if TYPE_CHECKING:
    from datetime import datetime

    from policies.change_sets.approvals.needs import GivenApproval, Need
    from policies.models import ChangeSet
    from policies.services.changes.approvals.evaluate import ChangeStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNeed:
    """A need in words; ``by`` are the users whose approvals count for it."""

    rule: str
    words: str
    role: str
    where: str
    approvers: int
    missing: int
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownApproval:
    """Somebody's approval, and whether it counts for any need."""

    user: str
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCheck:
    """A check of the present content."""

    kind: str
    title: str
    state: str
    number: int | None
    words: str
    updated: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReview:
    """What a change needs by the rules of now, its approvals and its checks."""

    needs: tuple[ShownNeed, ...]
    approvals: tuple[ShownApproval, ...]
    checks: tuple[ShownCheck, ...]

    @property
    def approvers(self) -> int:
        """How many approvals are asked for."""
        return sum(need.approvers for need in self.needs)

    @property
    def given(self) -> int:
        """How many of these are there."""
        return sum(need.approvers - need.missing for need in self.needs if need.approvers)

    @property
    def is_open(self) -> bool:
        """Whether anything is missing."""
        return any(need.missing for need in self.needs)


def shown_review(change: ChangeSet, *, user: Any) -> ShownReview:
    """What the user may see of it: words about hidden places say only that there are some."""
    standing = standing_of(change)
    places = places_of(change.items.all())
    hidden = {place for place in places if not roles.sees(user, *place)}
    rows = ChangeCheck.objects.filter(change=change, content_hash=change.content_hash)
    return ShownReview(
        needs=tuple(_need(need, standing, hidden=hidden) for need in standing.needs),
        approvals=tuple(_approval(each, standing) for each in standing.approvals),
        checks=tuple(
            ShownCheck(
                kind=row.kind,
                title=row.title,
                state=row.state,
                number=None if hidden else row.number,
                words="" if hidden else row.words,
                updated=row.updated,
            )
            for row in rows
        ),
    )


def _need(need: Need, standing: ChangeStanding, *, hidden: set[tuple[str, str]]) -> ShownNeed:
    is_hidden = bool(hidden & set(need.places)) or bool(hidden and need.check)
    where = "namespaces that you do not see" if is_hidden else need.where
    words = need.words
    if is_hidden:
        asked = f"needs {need.approvers} {need.role} of {where}"
        words = "waits for checks" if need.check else asked
    counting = [each.user for each in standing.approvals if not need.check and each.covers(need)]
    return ShownNeed(
        rule=need.rule,
        words=words,
        role=need.role,
        where=where,
        approvers=need.approvers,
        missing=need.missing(standing.approvals),
        by=tuple(dict.fromkeys(counting)),
    )


def _approval(given: GivenApproval, standing: ChangeStanding) -> ShownApproval:
    counts = any(not need.check and given.covers(need) for need in standing.needs)
    return ShownApproval(user=given.user, counts=counts)
