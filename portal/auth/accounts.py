"""Accounts: the first admin, and which tokens and sessions end with an account or a password."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.signals import post_save
from django.dispatch import receiver
from knox.models import AuthToken

if TYPE_CHECKING:
    from collections.abc import Iterator


def ensure_first_admin() -> str | None:
    """Make the first admin where no superuser exists; returns its password if it was generated.

    ``GATEHOUSE_ADMIN_USER`` and ``GATEHOUSE_ADMIN_PASSWORD`` (or ``…_FILE``) say who that is.
    """
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    given = settings.GATEHOUSE_ADMIN_PASSWORD
    password = given or secrets.token_urlsafe(12)
    users.create_superuser(username=settings.GATEHOUSE_ADMIN_USER, email="", password=password)
    return None if given else password


@receiver(post_save, sender=User)
def end_access(instance: User, **_: Any) -> None:
    """Forget tokens and sessions, so that activating it again revives none."""
    if instance.is_active:
        return
    AuthToken.objects.filter(user=instance).delete()
    Session.objects.filter(pk__in=list(_sessions_of(instance))).delete()


def _sessions_of(user: User) -> Iterator[str]:
    for session in Session.objects.iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            yield session.session_key


class EndTokens:
    """Ends a person's tokens when the password changes, wherever it is changed.

    Django informs its validators of each password that was set and stored; it ends the other
    sessions itself. A hash that is renewed at sign-in is no change.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Every password is good enough for this one."""

    def password_changed(self, _password: str, user: Any = None) -> None:
        """Take all tokens of this person back."""
        if user is not None and user.pk:
            AuthToken.objects.filter(user=user).delete()

    def get_help_text(self) -> str:
        """What the form says beside the field."""
        return "A new password ends your other sessions and your tokens."
