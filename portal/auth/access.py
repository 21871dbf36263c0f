"""End the tokens and sessions of a deactivated account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.signals import post_save
from django.dispatch import receiver
from knox.models import AuthToken

if TYPE_CHECKING:
    from collections.abc import Iterator


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
