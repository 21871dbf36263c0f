"""TimelineView, all steps of a change with a comment box; ``last_steps`` for the overview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404

from policies.services import changes
from portal.pages.changes.sets.frame import ChangePage
from portal.pages.changes.sets.people import people_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.models import ChangeSet, ChangeStep
    from portal.pages.changes.sets.people import NamedPerson

MOST_LISTED: Final = 500
"""So many steps, the last ones, are on the tab; the API has all."""
SHOWN: Final = 8
"""So many steps are on the overview; the tab has all."""
COMMENTED: Final = "Your comment is on record."


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLine:
    """A step, and who took it."""

    step: ChangeStep
    person: NamedPerson


class TimelineView(ChangePage):
    """All steps of a change, the first of them first."""

    template_name = "changes/sets/timeline.html"
    route = "change-timeline"
    done_words = {"comment": COMMENTED}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The steps; how many earlier ones are left out."""
        lines = last_steps(self.change, self.request.user, most=MOST_LISTED)
        earlier = self.change.steps.count() - len(lines)
        return super().get_context_data(**kwargs, lines=lines, earlier=earlier)

    def take(self, verb: str, _rest: str) -> None:
        """Comment."""
        if verb != "comment":
            raise Http404
        changes.comment(self.change, user=self.username, note=self.sent_note())


def last_steps(change: ChangeSet, user: Any, *, most: int = SHOWN) -> list[TimelineLine]:
    """The last steps, the oldest of them first."""
    newest = change.steps.order_by("-id")[:most]
    return _lines(change, user, reversed(newest))


def _lines(change: ChangeSet, user: Any, steps: Iterable[ChangeStep]) -> list[TimelineLine]:
    shown = changes.visible_steps(change, user, steps=steps)
    people = people_of(each.user for each in shown)
    return [TimelineLine(step=each, person=people[each.user]) for each in shown]
