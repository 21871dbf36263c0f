"""Replays of a change set, one of each cluster: asked for together, found, current or not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Max

from admission.models import Replay
from admission.replay import work
from admission.replay.access import require_cluster, require_places
from admission.replay.policies import Proposal
from admission.replay.proposal import proposal_text
from admission.replay.scope import ReplayScope, days_back
from policies.db.clock import read_clock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.models import ChangeItem

NOTHING: Final = "There is nothing to replay: the change has no object."
UNSEEN: Final = (
    "The change has objects in places that you do not see. Ask somebody who sees them to replay it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReplay:
    """The last replay of a change in one cluster; not current once something else is proposed."""

    replay: Replay
    is_current: bool


def proposals_of(items: Iterable[ChangeItem]) -> dict[str, Proposal]:
    """What the objects of a change set propose to each cluster."""
    manifests: dict[str, list[Any]] = defaultdict(list)
    deletions: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if item.content is None:
            deletions[item.cluster].append(item.key)
        else:
            manifests[item.cluster].append(item.content)
    return {
        name: Proposal(manifests=tuple(manifests[name]), deletions=tuple(deletions[name]))
        for name in sorted(manifests.keys() | deletions.keys())
    }


def request_all(change: int, *, items: Iterable[ChangeItem], user: Any, days: int) -> list[Replay]:
    """Ask for a replay in each cluster of a change set, of the last days.

    Raises ``UnseenPlaceError`` unless the user sees all its places, and ``TooManyOpenError``.
    """
    proposals = proposals_of(items)
    for name, proposal in proposals.items():
        require_cluster(user, name)
        require_places(user, cluster=name, namespaces=(), proposal=proposal)
    now = read_clock()
    with transaction.atomic():
        return [
            work.request(
                ReplayScope(cluster=name, since=days_back(days, until=now), until=now),
                proposal,
                user=user.get_username(),
                change_set=change,
                # Clusters of one change are one wish.
                is_further=index > 0,
            )
            for index, (name, proposal) in enumerate(proposals.items())
        ]


def replays_of(change: int, *, items: Iterable[ChangeItem]) -> list[ChangeReplay]:
    """The last whole replay in each cluster of a change set; two queries."""
    proposals = proposals_of(items)
    whole = Replay.objects.filter(change_set=change, query="", cluster__in=proposals)
    newest = (
        whole.exclude(state=Replay.State.CANCELLED)
        .order_by()
        .values("cluster")
        .annotate(newest=Max("pk"))
        .values("newest")
    )
    found = Replay.objects.filter(pk__in=newest).order_by("cluster")
    return [
        ChangeReplay(replay=each, is_current=_is_current(each, proposals[each.cluster]))
        for each in found
    ]


def _is_current(replay: Replay, proposal: Proposal) -> bool:
    # A change may be named by whoever replays something: what was replayed is compared.
    is_whole = not replay.decisions and replay.namespaces == proposal.namespaces
    return is_whole and replay.proposal == proposal_text(proposal)
