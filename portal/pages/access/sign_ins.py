"""SignInListView: who signed in last, how and from where, failed tries, open sessions to end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from policies.models import SignIn
from policies.models.credentials import KEPT, MOST_FAILURES
from policies.plurals import counted
from portal.auth.accounts import end_sessions, note_change, sessions_by_account
from portal.auth.invitations import awaits_password
from portal.auth.sign_in import locked_out
from portal.pages.access.keepers import KeepersPage
from portal.pages.access.subjects import accounts_in_care
from portal.pages.lists import ListColumns, listed
from portal.pages.views import whole_number

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

RECENT: Final = timedelta(days=7)
LONG: Final = timedelta(days=90)
_COLUMNS: Final = ListColumns(
    headings=(
        ("who", "Person", "who"),
        ("last", "Last sign-in", ""),
        ("", "How", "only-wide"),
        ("from", "From", "only-wide"),
        ("failed", f"Failed in {RECENT.days} days", "figure"),
        ("", "Sessions", "figure only-wide"),
        ("", "State", ""),
    ),
    orders={
        "who": ("username",),
        "last": (F("last_login").asc(nulls_first=True), "-username"),
        "from": (F("last_address").asc(nulls_first=True), "username"),
        "failed": ("failures", "-username"),
    },
    usual="-last",
    searched=("username", "first_name", "last_name", "email", "last_address"),
)
_WAYS: Final = dict(SignIn.Way.choices)


@dataclass(frozen=True, slots=True)
class SignInLine:
    """A row: an account, its open sessions (None: not counted), and whether it can sign in."""

    user: Any
    way: str
    sessions: int | None
    is_own: bool
    state: str
    look: str

    @property
    def may_end(self) -> bool:
        """Whether there may be sessions besides the one that asks."""
        return self.sessions is None or self.sessions > int(self.is_own)

    @property
    def question(self) -> str:
        """What is asked before they end."""
        which = "all your sessions but this one" if self.is_own else f"the sessions of {self.user}"
        return f"End {which}? Tokens stay valid."


@dataclass(frozen=True, slots=True)
class SignInPart:
    """A part of the list: accounts that need a look, and their number."""

    key: str
    label: str
    number: int
    is_current: bool


class SignInListView(KeepersPage):
    """The people that a keeper of accounts looks after; the sessions of one are ended."""

    template_name = "access/sign_ins.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of accounts, and how many need a look."""
        now, people = timezone.now(), _people(self.request.user, timezone.now())
        parts, part = _parts(now), self.request.GET.get("part", "")
        counts = {key: Count("pk", filter=fits) for key, _, fits in parts}
        numbers = people.aggregate(all=Count("pk"), **counts)
        wanted = next((fits for key, _, fits in parts if key == part), Q())
        asked = listed(people.filter(wanted), self.request, _COLUMNS)
        unknown = SignIn.objects.filter(user=None, created__gt=now - RECENT)
        return super().get_context_data(
            **kwargs,
            **asked,
            number=numbers["all"],
            part=part if wanted else "",
            parts=[SignInPart(k, label, numbers[k], k == part) for k, label, _ in parts],
            lines=list(_lines(asked["page"], self.request.user)),
            unknown_names=unknown.count(),
            days=RECENT.days,
            kept_days=KEPT.days,
            most_failures=MOST_FAILURES,
        )

    def post(self, request: HttpRequest) -> HttpResponse:
        """End the sessions of one account; one's own goes on."""
        people = accounts_in_care(request.user)
        user = get_object_or_404(people, pk=whole_number(request.POST.get("end", "")))
        ended = end_sessions(user, but=request.session.session_key)
        if ended:
            note_change(user, f"Ended {counted(ended, 'sessions')}.", author=request.user)
        messages.success(request, f"Ended: {counted(ended, 'sessions')} of {user}.")
        return redirect(request.get_full_path())


def _people(keeper: Any, now: dt.datetime) -> QuerySet[Any]:
    """The accounts of people with their last sign-in and their failed tries."""
    tries = SignIn.objects.filter(user=OuterRef("pk")).order_by("-created", "-pk")
    last = tries.filter(outcome=SignIn.Outcome.SIGNED_IN)
    is_failed = Q(sign_ins__outcome=SignIn.Outcome.FAILED, sign_ins__created__gt=now - RECENT)
    people = accounts_in_care(keeper).filter(service_account=None)
    annotated: QuerySet[Any] = people.annotate(
        last_way=Subquery(last.values("way")[:1]),
        last_address=Subquery(last.values("address")[:1]),
        failures=Count("sign_ins", filter=is_failed),
    )
    return annotated


def _parts(now: dt.datetime) -> tuple[tuple[str, str, Q], ...]:
    """The accounts that need a look: key, words, and which they are."""
    return (
        ("failed", f"Failed in {RECENT.days} days", Q(failures__gt=0)),
        ("never", "Never signed in", Q(last_login=None)),
        ("long", f"Not for {LONG.days} days", Q(last_login__lt=now - LONG)),
    )


def _lines(page: Iterable[Any], reader: Any) -> Iterator[SignInLine]:
    users = list(page)
    sessions, locked = sessions_by_account(), locked_out(user.username for user in users)
    for user in users:
        state, look = _state_of(user, is_locked=user.username in locked)
        yield SignInLine(
            user,
            _WAYS.get(user.last_way, ""),
            None if sessions is None else sessions[str(user.pk)],
            user.pk == reader.pk,
            state,
            look,
        )


def _state_of(user: Any, *, is_locked: bool) -> tuple[str, str]:
    if is_locked:
        return "locked out", "failed"
    if awaits_password(user):
        return "invited", "waiting"
    if not user.has_usable_password():
        return "no password", "plain"
    return ("active", "ok") if user.last_login else ("never signed in", "plain")
