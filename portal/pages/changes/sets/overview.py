"""ChangeOverviewView: a change at a glance, and the steps that its head and cards take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import Http404

from policies.services import changes
from portal.pages.changes.sets.contents import contents_of
from portal.pages.changes.sets.frame import ChangePage
from portal.pages.changes.sets.list import sent_description
from portal.pages.changes.sets.replay_box import replayed
from portal.pages.changes.sets.timeline import COMMENTED, last_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from policies.models import ChangeSet


class ChangeOverviewView(ChangePage):
    """Contents in words; at the right the last steps, and a comment."""

    template_name = "changes/sets/overview.html"
    route = "change"
    done_words = {
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
        items = list(changes.visible_items(change, user))
        return super().get_context_data(
            **kwargs,
            contents=contents_of(items),
            replayed=replayed(change, items=items, user=user),
            steps=last_steps(change, user),
        )

    def take(self, verb: str, _rest: str) -> None:
        """Take a step of the change, or describe it."""
        sent = self.request.POST
        if verb in {"submit", "publish"}:
            step = changes.submit if verb == "submit" else changes.publish
            self.require(verb)
            step(self.change, user=self.username, seen=sent.get("seen", ""))
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


_PLAIN_STEPS: Final[Mapping[str, Callable[..., ChangeSet]]] = {
    "withdraw": changes.withdraw,
    "abandon": changes.abandon,
    "revert": changes.revert,
}
