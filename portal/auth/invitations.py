"""``invite``: an account without a password, and the link by which its owner sets one, once.

The link's token is Django's: it ends with the first password, and after ``PASSWORD_RESET_TIMEOUT``.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from policies import roles
from portal.auth.accounts import note_change


@transaction.atomic
def invite(*, username: str, email: str, author: Any) -> User:
    """Create an account that cannot sign in yet; raises ``ValidationError``."""
    user = User(username=username, email=email)
    user.set_unusable_password()
    # The record names accounts: none may look like another, whether that is active or not.
    if User.objects.filter(username__iexact=username).exists():
        taken = ValidationError(
            "An account has, or once had, this name: choose another.", code="unique"
        )
        raise ValidationError({"username": taken})
    user.full_clean()
    user.save()
    LogEntry.objects.log_actions(
        author.pk, User.objects.filter(pk=user.pk), ADDITION, "Invited.", single_object=True
    )
    return user


def awaits_password(user: User) -> bool:
    """Whether a link may set the account's password: a person's who never signed in."""
    # Who signs in without a password comes from elsewhere, and must not get a second way in.
    is_new = not user.has_usable_password() and user.last_login is None
    return user.is_active and is_new and not hasattr(user, "service_account")


def may_link(author: Any, user: User) -> bool:
    """Whether the author may have a link for the account: it hands over all that the account may.

    A superuser's account is for superusers to hand over.
    """
    keeps = roles.may(author, roles.KEEP_ACCOUNTS)
    return keeps and awaits_password(user) and (author.is_superuser or not user.is_superuser)


def new_link(user: User, *, author: Any) -> str:
    """The path of a new link; the account's history says who has made it."""
    note_change(user, "A link to set the password was made.", author=author)
    key = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("invitation", args=[key, default_token_generator.make_token(user)])
