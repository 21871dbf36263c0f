"""CountsView: how much work waits behind an item of the navigation, for scripts to fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import JsonResponse

from policies import roles
from portal.pages.shell.chosen import chosen_cluster
from portal.pages.shell.quota_lines import quota_lines
from portal.pages.views import PortalPage
from sync.models import SyncedObject

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_STATES: Final = SyncedObject.State
WAITING_STATES: Final = (_STATES.DRIFTED, _STATES.CONFLICT, _STATES.HELD)
"""States of objects that wait for a person."""


class CountsView(PortalPage):
    """Counts as JSON; apart from the pages, so that no page waits for them."""

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Quotas that need attention, and objects to settle, in the chosen cluster or in all."""
        cluster = chosen_cluster(request)
        counts = {
            "quotas": quotas_waiting(request.user, cluster),
            "drift": objects_waiting(request.user, cluster),
        }
        return JsonResponse(counts)


def quotas_waiting(user: Any, cluster: str) -> int:
    """Quotas that need attention, as the page of quotas counts them."""
    return sum(line.needs_attention for line in quota_lines(user, cluster))


def objects_waiting(user: Any, cluster: str) -> int:
    """Objects that drifted, are in conflict or held, in clusters that the reader sees whole."""
    waiting = SyncedObject.objects.filter(gone=None, state__in=WAITING_STATES)
    waiting = roles.visible(waiting, user, cluster="cluster__name", whole=True)
    return (waiting.filter(cluster__name=cluster) if cluster else waiting).count()
