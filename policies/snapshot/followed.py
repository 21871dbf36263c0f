"""``is_followed``, ``was_followed``: whether a follower watches a cluster, by its heartbeat."""

from __future__ import annotations

import time
from typing import Final

from django.db import connection

from policies.db.deferred import ask
from policies.models import ClusterFollower

LOOK_EVERY: Final = 1.0
"""Seconds for which ``was_followed`` believes what it found."""
HEARTBEAT_SECONDS: Final = 10
"""A follower with an older heartbeat may not see soon what happens in its cluster."""
YOUNG: Final = {
    "postgresql": f"clock_timestamp() - interval '{HEARTBEAT_SECONDS} seconds'",
    "sqlite": f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-{HEARTBEAT_SECONDS} seconds')",
}
"""The earliest time of a heartbeat that counts, in the words of each database."""
_SQL: Final = f"""
    SELECT cluster_id FROM {ClusterFollower._meta.db_table}
    WHERE cluster_id = %s AND heartbeat > {{young}}"""  # noqa: S608, SLF001 - our own names

_last_looks: Final[dict[int, tuple[float, bool]]] = {}
"""By cluster: when ``was_followed`` looked, and what it found."""


def is_followed(cluster_id: int) -> bool:
    """Whether what happens in a cluster is known here within a moment.

    It may be asked inside a transaction of few packets.
    """
    return bool(ask(_SQL.format(young=YOUNG[connection.vendor]), (cluster_id,))())


def was_followed(cluster_id: int) -> bool:
    """As ``is_followed`` a second ago at most: refusals come in thousands, too."""
    looked, answer = _last_looks.get(cluster_id, (-LOOK_EVERY, False))
    if time.monotonic() - looked >= LOOK_EVERY:
        answer = is_followed(cluster_id)
        _last_looks[cluster_id] = (time.monotonic(), answer)
    return answer


def forget_looks() -> None:
    """Forget what ``was_followed`` found, for tests that empty the database."""
    _last_looks.clear()
