"""ScopedTokenAuthentication: the owner of an API token, limited to what the token allows.

The one place where a token becomes a user: what its owner's roles grant is limited to what the
token allows, its use is noted, and a token to read is refused where something is written.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any, Final

from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone
from knox.auth import TokenAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS

from policies import roles
from policies.models import ApiToken

NOTED_AFTER: Final = timedelta(minutes=1)
"""A use within this time of the last one that was noted is not noted: reads stay reads."""
READ_ONLY: Final = "This token may read only."


class ScopedTokenAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox has no types
    """``Authorization: Token SECRET``; the user may do no more than the token allows."""

    def authenticate(self, request: Any) -> tuple[Any, ApiToken] | None:
        """The owner and the token; raises ``PermissionDenied`` for a write with one to read."""
        owner_and_token: tuple[Any, ApiToken] | None = super().authenticate(request)
        if owner_and_token is None:
            return None
        owner, token = owner_and_token
        if token.is_read_only and request.method not in SAFE_METHODS and not _only_reads(request):
            raise PermissionDenied(READ_ONLY, code="read_only_token")
        roles.limit(owner, token)
        _note_use(token)
        return owner, token


def _only_reads(request: Any) -> bool:
    """Whether the view declares that its POST stores nothing, as a simulation does."""
    context = getattr(request, "parser_context", None) or {}
    return bool(getattr(context.get("view"), "stores_nothing", False))


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used is not None and now - token.last_used < NOTED_AFTER:
        return
    # Requests at the same time: the first notes it, and the others find it noted.
    is_old = Q(last_used=None) | Q(last_used__lte=now - NOTED_AFTER)
    # A database that is busy or takes no writes is no reason to refuse a read.
    with contextlib.suppress(OperationalError), transaction.atomic():
        ApiToken.objects.filter(is_old, pk=token.pk).update(last_used=now)
