"""System checks of settings and database, each with its fix."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's word
from django.db import DatabaseError, connections
from psycopg_pool import PoolTimeout

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DURABLE: Final = ("fsync", "full_page_writes", "synchronous_commit")


@register(Tags.security, deploy=True)
def check_external_url(**_: Any) -> list[CheckMessage]:
    """Passwords and reviews must not cross a network in the clear."""
    address = urlsplit(settings.GATEHOUSE_EXTERNAL_URL)
    if address.scheme == "https" or address.hostname in _LOOPBACK:
        return []
    hint = "Put TLS in front and set GATEHOUSE_EXTERNAL_URL to the https:// address."
    return [Warning("The portal is served over plain HTTP.", hint=hint, id="portal.W001")]


@register(Tags.security)
def check_secret_key_file(**_: Any) -> list[CheckMessage]:
    """The generated secret key is its owner's alone."""
    path = Path(settings.GATEHOUSE_VAR) / "secret-key"
    if not path.exists() or not stat.S_IMODE(path.stat().st_mode) & 0o077:
        return []
    hint = f"Run: chmod 600 {path}"
    return [Warning("Others can read the secret key.", hint=hint, id="portal.W002")]


@register(Tags.compatibility)
def check_broker(**_: Any) -> list[CheckMessage]:
    """A database for several machines goes with a broker for several machines."""
    is_shared = settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
    if not is_shared or not settings.CELERY_BROKER_URL.startswith("filesystem:"):
        return []
    hint = "Set GATEHOUSE_BROKER_URL to redis://HOST:6379/0, or run everything on one machine."
    message = "Background work is queued in files, which no other machine sees."
    return [Warning(message, hint=hint, id="portal.W003")]


@register(Tags.security)
def check_allowed_hosts(**_: Any) -> list[CheckMessage]:
    """A host name that anybody may claim ends up in links."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Name the hosts in GATEHOUSE_ALLOWED_HOSTS; probes need none."
    return [Warning("Any host name is taken.", hint=hint, id="portal.W004")]


@register(Tags.database)
def check_durability(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """An answer that was given must survive a power cut: the server writes before it confirms."""
    return [found for name in databases or () for found in _check_server(name)]


@register(Tags.database)
def check_session(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """A session of ours is one session of the server's: locks and prepared statements belong to it.

    A pooler that shares sessions by transaction gives the session of one idle connection to
    another, and the first one another session later.
    """
    hint = "Connect to PostgreSQL itself, or set the pooler to share by session (pool_mode)."
    message = "A pooler between the portal and PostgreSQL shares sessions by transaction."
    return [
        Error(message, hint=hint, id="portal.E002")
        for name in databases or ()
        if connections[name].vendor == "postgresql" and _is_shared_by_transaction(name)
    ]


def _is_shared_by_transaction(name: str) -> bool:
    words = connections[name].get_connection_params()
    words.pop("pool", None)
    try:
        with psycopg.connect(**words, autocommit=True) as idle:
            before = _session(idle)
            with psycopg.connect(**words, autocommit=True) as busy, busy.transaction():
                return _session(busy) == before or _session(idle) != before
    except psycopg.Error:
        return False  # whoever asks for the database next says so better


def _session(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0


def _check_server(name: str) -> list[CheckMessage]:
    connection = connections[name]
    if connection.vendor != "postgresql":
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(_DURABLE)]
            )
            switched_off = sorted(each for each, value in cursor.fetchall() if value == "off")
    except (DatabaseError, PoolTimeout):
        return []  # whoever asks for the database next says so better
    hint = "Turn it on in postgresql.conf: without it, answered decisions can be lost."
    return [
        Error(f"PostgreSQL runs with {each} = off.", hint=hint, id="portal.E001")
        for each in switched_off
    ]
