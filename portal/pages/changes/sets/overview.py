"""ChangeOverviewView: a change at a glance, and the steps that its head and cards take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404

from policies.change_sets.states import ChangeState
from policies.services import changes
from portal.pages.changes.sets.contents import contents_of
from portal.pages.changes.sets.frame import ChangePage
from portal.pages.changes.sets.list import sent_description
from portal.pages.changes.sets.replay_box import replayed
from portal.pages.changes.sets.review import (
    DONE_WORDS,
    REVIEWING,
    may_take,
    review_cards,
    take_step,
)
from portal.pages.changes.sets.rollout.card import rollout_card
from portal.pages.changes.sets.timeline import COMMENTED, last_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from policies.models import ChangeSet


class ChangeOverviewView(ChangePage):
    """Contents in words; at the right the last steps, and a comment."""

    template_name = "changes/sets/overview.html"
    route = "change"
    done_words = {
        **DONE_WORDS,
        "submit": "Submitted. Nobody has to approve it: publish it when you like.",
        "withdraw": "It is a draft again.",
        "abandon": "Abandoned.",
        "publish": "Published. It applies from the next decision on.",
        "revert": "Reverted: everything is as it was before.",
        "comment": COMMENTED,
        "describe": "Saved.",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the cards show."""
        change, user = self.change, self.request.user
        cards = review_cards(change, user)
        items = list(changes.visible_items(change, user))
        return super().get_context_data(
            **kwargs,
            contents=contents_of(items, new=self.since_look.new),
            since_look=self.since_look,
            replayed=replayed(change, items=items, user=user),
            steps=last_steps(change, user),
            **rollout_card(change, groups=self.groups, user=user),
            cards=cards,
            may_check=cards is not None and may_take(change, user, "runchecks"),
            may_publish_now=cards is not None
            and cards.review.is_open
            and may_take(change, user, "publishnow"),
        )

    def said(self, verb: str) -> str:
        """A submitted change may wait for approvals."""
        if verb == "submit":
            self.change.refresh_from_db()
            if self.change.state == ChangeState.IN_REVIEW:
                return "Submitted. The card Approvals says what it waits for."
        return super().said(verb)

    def take(self, verb: str, _rest: str) -> None:
        """Take a step of the change, or describe it."""
        sent = self.request.POST
        if verb in {"submit", "publish"}:
            step = changes.submit if verb == "submit" else changes.publish
            self.require(verb)
            step(self.change, user=self.username, seen=sent.get("seen", ""))
        elif verb in REVIEWING:
            self._review(verb)
        elif verb in _PLAIN_STEPS:
            self.require(verb)
            _PLAIN_STEPS[verb](self.change, user=self.username)
        elif verb == "comment":
            changes.comment(self.change, user=self.username, note=self.sent_note())
        elif verb == "describe":
            self.require(verb)
            description = sent_description(self.request)
            changes.describe_change(self.change, description=description, user=self.username)
        else:
            raise Http404

    def _review(self, verb: str) -> None:
        """Take a step of a reviewer, or of an emergency."""
        user, seen = self.request.user, self.request.POST.get("seen", "")
        if not may_take(self.change, user, verb):
            raise PermissionDenied
        take_step(self.change, user=user, verb=verb, seen=seen, note=self.sent_note())


_PLAIN_STEPS: Final[Mapping[str, Callable[..., ChangeSet]]] = {
    "withdraw": changes.withdraw,
    "abandon": changes.abandon,
    "revert": changes.revert,
}
