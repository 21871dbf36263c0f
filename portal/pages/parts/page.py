"""PartsView: every part of the style in every state, with invented contents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.http import Http404
from django.utils import timezone

from policies import roles
from portal.pages.views import PortalPage

OUTCOMES: Final = ("denied", "would-deny", "warned", "mutated", "allowed")
MODES: Final = ("enforce", "warn", "audit")
KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
SYNC_STATES: Final = ("in-sync", "writing", "drifted", "conflict", "portal-only", "paused")
LINES: Final = (
    ("denied", "payments", "payments-api", "compute: requests.cpu 9 > 8", 148),
    ("would-deny", "checkout", "cart", "cost-center: label is missing", 40),
    ("mutated", "search", "indexer", "defaults: limits.memory set", 0),
    ("allowed", "checkout", "cart-web", "–", 0),  # noqa: RUF001 - a dash, as the record shows it
)


class PartsView(PortalPage):
    """Open to admins, and to everybody where the portal is debugged; else there is no such page."""

    template_name = "parts_page/parts.html"

    def find(self, names: dict[str, Any]) -> None:
        """Hide the page from everybody else."""
        del names
        if not (settings.DEBUG or roles.may_somewhere(self.request.user, roles.GIVE_ROLES)):
            raise Http404

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Invented contents; no query."""
        now = timezone.now()
        return super().get_context_data(
            **kwargs,
            outcomes=OUTCOMES,
            modes=MODES,
            kinds=KINDS,
            sync_states=SYNC_STATES,
            lines=[
                {
                    "at": now - timedelta(seconds=17 * number),
                    "outcome": outcome,
                    "namespace": namespace,
                    "owner": owner,
                    "reason": reason,
                    "number": count,
                }
                for number, (outcome, namespace, owner, reason, count) in enumerate(LINES)
            ],
            yesterday=now - timedelta(days=1),
        )
