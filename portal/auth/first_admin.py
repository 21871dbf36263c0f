"""Create the first admin, from the settings or with a generated password."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib.auth import get_user_model


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
