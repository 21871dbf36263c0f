"""``rollout_card``: the state of a roll-out in short, for the overview of its change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.db.clock import read_clock
from policies.models import Rollout
from policies.services import changes
from portal.pages.changes.sets.rollout.lines import readings_of, tripped_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.models import ChangeSet
    from policies.services.changes import ItemGroup


def rollout_card(change: ChangeSet, *, groups: Sequence[ItemGroup], user: Any) -> dict[str, Any]:
    """What the card shows; nothing for a change without a plan."""
    rollout = Rollout.objects.filter(change=change).select_related("change").first()
    if rollout is None:
        return {}
    readings = readings_of(rollout, groups=groups, user=user, now=read_clock())
    sees_all = changes.sees_rollout(user, change, groups=groups)
    return {
        "rollout": rollout,
        "readings": readings,
        "holding": sum(reading.holds for reading in readings),
        "tripped": tripped_words(rollout, sees_all=sees_all),
    }
