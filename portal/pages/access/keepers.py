"""KeepersPage: pages for those who keep the accounts of the fleet; the numbers on their tabs."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied

from policies import roles, services
from portal.pages.access import subjects
from portal.pages.views import PortalPage


def tab_numbers(reader: Any) -> dict[str, int]:
    """How much each tab beside People has for a reader; the same queries for any number."""
    numbers = {
        "people": subjects.known_users(reader).count() + subjects.known_groups(reader).count(),
        "roles": subjects.visible_bindings(reader).count(),
    }
    if roles.may(reader, roles.KEEP_ACCOUNTS):
        numbers["services"] = services.service_accounts().count()
        numbers["tokens"] = services.tokens_in_care(keeper=reader).count()
    return numbers


class KeepersPage(PortalPage):
    """A page for those who keep the accounts of the fleet: invite, give tokens, revoke, end."""

    permission = roles.KEEP_ACCOUNTS

    def find(self, names: dict[str, Any]) -> None:
        """Refuse everybody else before anything is looked up."""
        super().find(names)
        if not roles.may(self.request.user, roles.KEEP_ACCOUNTS):
            raise PermissionDenied

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the numbers of the tabs."""
        numbers = tab_numbers(self.request.user)
        return super().get_context_data(**kwargs, tab_numbers=numbers)
