"""Tells editors how many of the pods that run would not come back under a draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from admission.explain.running_pods import running_in
from engine.errors import DecodeError
from policies.drafts import danger
from policies.simulation import with_unsaved
from portal.pages.policies.restart_impact import restarts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import PolicySet
    from policies.drafts.draft import PolicyPlace


def refused_running(
    place: PolicyPlace, manifest: Mapping[str, Any], before: PolicySet
) -> Sequence[str]:
    """Say so where they are more of a hundred than GATEHOUSE_CONFIRM_REFUSED_PERCENT."""
    if place.namespace is None:
        return ()
    running = running_in(place.cluster, place.namespace.name)
    try:
        after = with_unsaved(before, [manifest])
        newly = restarts_of(running, before=before, after=after).newly
    except DecodeError:
        return ()
    if newly * 100 <= settings.GATEHOUSE_CONFIRM_REFUSED_PERCENT * len(running.pods):
        return ()
    return (f"{newly} of {len(running.pods)} pods that run here would not come back",)


danger.tellers.append(refused_running)
