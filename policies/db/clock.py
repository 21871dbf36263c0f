"""``read_clock``: the time of the database server (``clock_timestamp``), for leases and ages."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection

_CLOCK: Final = {
    "postgresql": "SELECT clock_timestamp()",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
}


def read_clock() -> dt.datetime:
    """Read the database's clock: hosts disagree about the time, their database does not."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOCK[connection.vendor])
        [now] = cursor.fetchone()
    database_time = dt.datetime.fromisoformat(now) if isinstance(now, str) else now
    return database_time.replace(tzinfo=database_time.tzinfo or dt.UTC)
