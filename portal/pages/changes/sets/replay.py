"""ChangeReplayView: what recorded requests would have met under a change; asked for by a button."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.http import Http404

from admission.replay.access import UnseenPlaceError
from admission.replay.of_change import NOTHING, UNSEEN, request_all
from admission.replay.work import TooManyOpenError
from policies.services import changes
from portal.pages.changes.sets.frame import ChangePage
from portal.pages.changes.sets.replay_box import look_of, replayed
from portal.pages.replays.form import TOO_MANY, USUAL_DAYS

MOST_OWNERS: Final = 200


class ChangeReplayView(ChangePage):
    """The replays of a change, those of its clusters together."""

    template_name = "changes/sets/replay.html"
    route = "change-replay"
    done_words = {"replay": "Asked for. The result is shown here."}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What they found, of the chosen kind of change."""
        change, user, kind = self.change, self.request.user, self.request.GET.get("change", "")
        items = changes.visible_items(change, user)
        found = replayed(change, items=items, user=user, kind=kind, most=MOST_OWNERS)
        return super().get_context_data(**kwargs, replayed=found, look=look_of(kind))

    def take(self, verb: str, _rest: str) -> None:
        """Ask for a replay in each cluster."""
        if verb != "replay":
            raise Http404
        items = list(self.change.items.all())
        if not items:
            raise ValidationError(NOTHING, code="no_objects")
        try:
            request_all(self.change.pk, items=items, user=self.request.user, days=USUAL_DAYS)
        except UnseenPlaceError as error:
            raise ValidationError(UNSEEN, code=error.code) from error
        except TooManyOpenError as error:
            raise ValidationError(TOO_MANY, code="too_many") from error
