"""``ensure_first_admin``, ``note_change``, sessions; they end with account or password."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone

from policies.models import ApiToken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

MOST_SESSIONS: Final = 1000
"""Open sessions that a page reads, which takes about 50 ms."""


def ensure_first_admin() -> str | None:
    """Create the first admin if no superuser exists; returns its password if it was generated.

    ``GATEHOUSE_ADMIN_USER`` and ``GATEHOUSE_ADMIN_PASSWORD`` (or ``…_FILE``) set name and password.
    """
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    configured_password = settings.GATEHOUSE_ADMIN_PASSWORD
    password = configured_password or secrets.token_urlsafe(12)
    users.create_superuser(username=settings.GATEHOUSE_ADMIN_USER, email="", password=password)
    return None if configured_password else password


def note_change(user: User, text: str, *, author: Any) -> None:
    """Note in the account's history what somebody did about it."""
    users = User.objects.filter(pk=user.pk)
    LogEntry.objects.log_actions(author.pk, users, CHANGE, text, single_object=True)


@receiver(post_save, sender=User)
def end_access(instance: User, **_: Any) -> None:
    """Delete tokens and sessions, so that reactivating the account revives none."""
    if instance.is_active:
        return
    ApiToken.objects.filter(user=instance).delete()
    end_sessions(instance)


def end_sessions(user: User, *, but: str | None = None) -> int:
    """Delete an account's sessions but one; returns how many they were."""
    keys = [key for key, owner in _owners(Session.objects.all()) if owner == str(user.pk)]
    ended, _ = Session.objects.filter(pk__in=set(keys) - {but}).delete()
    return ended


def sessions_by_account() -> Counter[str] | None:
    """The numbers of open sessions by the key of their account; None for too many to be read."""
    sessions = Session.objects.filter(expire_date__gt=timezone.now())
    if sessions.count() > MOST_SESSIONS:
        return None
    return Counter(owner for _, owner in _owners(sessions))


def _owners(sessions: QuerySet[Session]) -> Iterator[tuple[str, str]]:
    """The key of each session, and that of its account."""
    # Only the encoded data of a session names its account, so every session has to be read.
    for session in sessions.iterator():
        yield session.pk, str(session.get_decoded().get(SESSION_KEY, ""))


class EndTokens:
    """A password validator that deletes a person's tokens when the password changes.

    Django calls ``password_changed`` after every change, on any page; it ends the other sessions
    itself. Renewing a hash at sign-in is no change.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Accept every password."""

    def password_changed(self, _password: str, user: Any = None) -> None:
        """Delete all tokens of this person."""
        if user is not None and user.pk:
            ApiToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        """The hint beside the form field."""
        return "A new password ends your other sessions and your tokens."
