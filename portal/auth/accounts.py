"""``ensure_first_admin``, ``note_change``; tokens and sessions end with account or password."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.signals import post_save
from django.dispatch import receiver

from policies.models import ApiToken


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
    # Only the encoded data of a session names its account, so every session has to be read.
    ended_sessions = [
        session.pk
        for session in Session.objects.iterator()
        if session.get_decoded().get(SESSION_KEY) == str(instance.pk)
    ]
    Session.objects.filter(pk__in=ended_sessions).delete()


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
