"""KeepersPage: pages for those who keep the accounts of the fleet."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied

from policies import roles
from portal.pages.views import PortalPage


class KeepersPage(PortalPage):
    """A page for those who keep the accounts of the fleet: invite, give tokens, revoke, end."""

    permission = roles.KEEP_ACCOUNTS

    def find(self, names: dict[str, Any]) -> None:
        """Refuse everybody else before anything is looked up."""
        super().find(names)
        if not roles.may(self.request.user, roles.KEEP_ACCOUNTS):
            raise PermissionDenied
