"""Check that the secret key is the one that webhook credentials were made with.

A database that is restored without ``var/secret-key`` knows every credential and accepts none: a
cluster whose webhook fails closed then admits nothing. The check value says why.
"""

from __future__ import annotations

import hmac
from typing import Final

from django.conf import settings
from django.db import DatabaseError
from psycopg_pool import PoolTimeout

from policies.models import KeyCheck
from portal.secret_key import derive_key

PROBLEM: Final = (
    "the secret key is not the one that webhook credentials were made with: every cluster is"
    " refused. Restore var/secret-key (or GATEHOUSE_SECRET_KEY, GATEHOUSE_KEY_PEPPER) from the"
    " backup; or issue new credentials and run manage.py bootstrap --accept-key"
)


def ensure() -> str:
    """Keep the key's check value where there is none yet; gives what is wrong, empty if nothing."""
    KeyCheck.objects.get_or_create(id=1, defaults={"value": _value()})
    return problem()


def accept() -> None:
    """Take the key in use for the right one from now on."""
    KeyCheck.objects.update_or_create(id=1, defaults={"value": _value()})


def problem() -> str:
    """What is wrong with the key, empty if nothing is, or if the database is unreachable."""
    try:
        found = KeyCheck.objects.first()
    except (DatabaseError, PoolTimeout):
        return ""
    return PROBLEM if found and not hmac.compare_digest(found.value, _value()) else ""


def _value() -> str:
    return derive_key(settings.GATEHOUSE_KEY_PEPPER, "gatehouse key check")
