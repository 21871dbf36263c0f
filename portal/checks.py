"""Django system checks (portal.W001, E001 …) with hints: URL, key file, broker, PostgreSQL."""

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

_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DURABILITY_SETTINGS: Final = ("fsync", "full_page_writes", "synchronous_commit")


@register(Tags.security, deploy=True)
def check_external_url(**_: Any) -> list[CheckMessage]:
    """Passwords and reviews must not cross a network in the clear."""
    external_url = urlsplit(settings.GATEHOUSE_EXTERNAL_URL)
    if external_url.scheme == "https" or external_url.hostname in _LOOPBACK_HOSTS:
        return []
    hint = "Put TLS in front and set GATEHOUSE_EXTERNAL_URL to the https:// address."
    return [Warning("The portal is served over plain HTTP.", hint=hint, id="portal.W001")]


@register(Tags.security)
def check_secret_key_file(**_: Any) -> list[CheckMessage]:
    """Only its owner may read the generated secret key."""
    key_file = Path(settings.GATEHOUSE_VAR) / "secret-key"
    if not key_file.exists() or not stat.S_IMODE(key_file.stat().st_mode) & 0o077:
        return []
    hint = f"Run: chmod 600 {key_file}"
    return [Warning("Others can read the secret key.", hint=hint, id="portal.W002")]


@register(Tags.compatibility)
def check_broker(**_: Any) -> list[CheckMessage]:
    """A database that several machines share needs a broker that they share."""
    is_shared = settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
    if not is_shared or not settings.CELERY_BROKER_URL.startswith("filesystem:"):
        return []
    hint = "Set GATEHOUSE_BROKER_URL to redis://HOST:6379/0, or run everything on one machine."
    message = "Background work is queued in files, which no other machine sees."
    return [Warning(message, hint=hint, id="portal.W003")]


@register(Tags.security)
def check_allowed_hosts(**_: Any) -> list[CheckMessage]:
    """Links use the host name of a request, so a wildcard lets callers choose it."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Name the hosts in GATEHOUSE_ALLOWED_HOSTS; probes need none."
    return [Warning("Any host name is accepted.", hint=hint, id="portal.W004")]


@register(Tags.database)
def check_durability(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """An answered decision must survive a power cut: the server must write before it confirms."""
    hint = "Turn it on in postgresql.conf: without it, answered decisions can be lost."
    return [
        Error(f"PostgreSQL runs with {setting} = off.", hint=hint, id="portal.E001")
        for alias in databases or ()
        if connections[alias].vendor == "postgresql"
        for setting in _durability_off(alias)
    ]


@register(Tags.database)
def check_session(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """One of our connections must keep one session: locks and prepared statements belong to it."""
    hint = "Connect to PostgreSQL itself, or set the pooler to share by session (pool_mode)."
    message = "A pooler between the portal and PostgreSQL shares sessions by transaction."
    return [
        Error(message, hint=hint, id="portal.E002")
        for alias in databases or ()
        if connections[alias].vendor == "postgresql" and _is_shared_by_transaction(alias)
    ]


def _is_shared_by_transaction(alias: str) -> bool:
    # Such a pooler gives the session of an idle connection to another one that begins a
    # transaction, and the idle connection a different session later.
    parameters = connections[alias].get_connection_params()
    parameters.pop("pool", None)
    try:
        with psycopg.connect(**parameters, autocommit=True) as idle:
            idle_pid = _session_pid(idle)
            with psycopg.connect(**parameters, autocommit=True) as busy, busy.transaction():
                return _session_pid(busy) == idle_pid or _session_pid(idle) != idle_pid
    except psycopg.Error:
        return False  # the next query reports the failure better


def _session_pid(connection: psycopg.Connection[Any]) -> int:
    pid_row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(pid_row[0]) if pid_row else 0


def _durability_off(alias: str) -> list[str]:
    settings_query = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(settings_query, [list(_DURABILITY_SETTINGS)])
            return sorted(setting for setting, onoff in cursor.fetchall() if onoff == "off")
    except (DatabaseError, PoolTimeout):
        return []  # the next query reports the failure better
