"""TokenListView: the tokens of all people and service accounts in one list, revoked there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, F, Q
from django.shortcuts import redirect
from django.utils import timezone

from policies import services
from policies.plurals import counted
from portal.auth.accounts import note_change
from portal.pages.access.keepers import KeepersPage
from portal.pages.lists import ListColumns, listed

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from django.http import HttpRequest, HttpResponse

    from policies.models import ApiToken

SOON: Final = timedelta(days=7)
UNUSED: Final = timedelta(days=30)
MOST: Final = 200
"""Tokens that are revoked at once: as many as a page has."""
_COLUMNS: Final = ListColumns(
    headings=(
        ("owner", "Owner", "owner"),
        ("name", "Name", ""),
        ("", "Begins with", "only-wide"),
        ("may", "May", "may"),
        ("created", "Created", "only-wide"),
        ("used", "Last used", ""),
        ("expires", "Expires", ""),
        ("", "State", ""),
    ),
    orders={
        "owner": ("user__username", "name", "pk"),
        "name": ("name", "user__username", "pk"),
        "may": ("access", "cluster", "namespace", "pk"),
        "created": ("created", "pk"),
        # What was never used comes before what was used long ago; what never expires comes last.
        "used": (F("last_used").asc(nulls_first=True), "pk"),
        "expires": (F("expiry").asc(nulls_last=True), "pk"),
    },
    usual="owner",
    searched=("user__username", "user__first_name", "user__last_name", "name", "token_key"),
)


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A row: the token, and whether it still opens anything."""

    token: ApiToken
    state: str
    look: str


@dataclass(frozen=True, slots=True)
class TokenPart:
    """A part of the list: the tokens in one state, and their number."""

    key: str
    label: str
    number: int
    is_current: bool


class TokenListView(KeepersPage):
    """All tokens that a keeper of accounts looks after; one or many are revoked."""

    template_name = "access/tokens.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of tokens, and the numbers of those that need a look."""
        now, tokens = timezone.now(), services.tokens_in_care(keeper=self.request.user)
        parts, part = _parts(now), self.request.GET.get("part", "")
        counts = {key: Count("pk", filter=fits) for key, _, fits in parts}
        numbers = tokens.aggregate(all=Count("pk"), **counts)
        wanted = next((fits for key, _, fits in parts if key == part), Q())
        asked = listed(tokens.filter(wanted), self.request, _COLUMNS)
        return super().get_context_data(
            **kwargs,
            **asked,
            number=numbers["all"],
            part=part if wanted else "",
            parts=[TokenPart(k, label, numbers[k], k == part) for k, label, _ in parts],
            lines=list(_lines(asked["page"], now)),
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """Revoke the token of a row, or all that are picked; the list stays as it was asked for."""
        chosen = list(_ids(request.POST.getlist("revoke")[:MOST]))
        with transaction.atomic():
            tokens = list(services.tokens_in_care(keeper=request.user).filter(public_id__in=chosen))
            for token in tokens:
                services.revoke_token(token=token)
                note_change(token.user, f"Revoked the token {token.name}.", author=request.user)
        if tokens:
            words = tokens[0].name if len(tokens) == 1 else counted(len(tokens), "tokens")
            messages.success(request, f"Revoked: {words}. Requests with it are refused.")
        else:
            messages.error(request, "Select at least one token. None was revoked.")
        return redirect(request.get_full_path())


def _parts(now: dt.datetime) -> tuple[tuple[str, str, Q], ...]:
    """The states that need a look: key, words, and what is in them."""
    is_valid = Q(expiry=None) | Q(expiry__gt=now)
    is_unused = Q(last_used__lt=now - UNUSED) | Q(last_used=None, created__lt=now - UNUSED)
    return (
        ("soon", f"Expire in {SOON.days} days", Q(expiry__gt=now, expiry__lte=now + SOON)),
        ("unused", f"Not used for {UNUSED.days} days", is_valid & is_unused),
        ("forever", "Never expire", Q(expiry=None)),
        ("expired", "Expired", Q(expiry__lte=now)),
    )


def _lines(tokens: Iterable[ApiToken], now: dt.datetime) -> Iterator[TokenLine]:
    for token in tokens:
        if token.expiry is not None and token.expiry <= now:
            yield TokenLine(token, "expired", "plain")
        elif token.expiry is not None and token.expiry <= now + SOON:
            yield TokenLine(token, "expires soon", "warning")
        else:
            yield TokenLine(token, "valid", "ok")


def _ids(sent: Iterable[str]) -> Iterator[UUID]:
    """The identifiers among what a browser sent."""
    for text in sent:
        try:
            yield UUID(text)
        except ValueError:
            continue
