"""``ask_followed``: which clusters a follower watches, by its heartbeat."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from django.db import connection

from policies.db.deferred import ask
from policies.models import ClusterFollower

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_NEVER: Final = (float("-inf"), False)
LOOK_EVERY: Final = 1.0
"""Seconds for which an answer will do where it may be late."""
HEARTBEAT_SECONDS: Final = 10
"""A follower with an older heartbeat may not see soon what happens in its cluster."""
YOUNG: Final = {
    "postgresql": f"clock_timestamp() - interval '{HEARTBEAT_SECONDS} seconds'",
    "sqlite": f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-{HEARTBEAT_SECONDS} seconds')",
}
"""The earliest time of a heartbeat that counts, in the words of each database."""
_SQL: Final = {
    "postgresql": "cluster_id = ANY(%s::bigint[])",
    "sqlite": "cluster_id IN (SELECT value FROM json_each(%s))",
}

_last_looks: Final[dict[int, tuple[float, bool]]] = {}
"""By cluster: when it was looked at, and what was found."""


def ask_followed(now: Collection[int], lately: Collection[int]) -> Callable[[], frozenset[int]]:
    """Ask which of these clusters a follower watches: what happens there is known in a moment.

    It is asked of those in ``now``; for those in ``lately`` an answer a second old will do, since
    refusals come in thousands. It may be asked inside a transaction of few packets.
    """
    begun = time.monotonic()
    asked = {each for each in lately if begun - _last_looks.get(each, _NEVER)[0] >= LOOK_EVERY}
    asked.update(now)
    rows: Callable[[], list[tuple[int, ...]]] = list
    if asked:
        vendor = connection.vendor
        which = list(asked) if vendor == "postgresql" else json.dumps(list(asked))
        table = ClusterFollower._meta.db_table  # noqa: SLF001 - our own name
        sql = f"SELECT cluster_id FROM {table} WHERE {_SQL[vendor]} AND heartbeat > {YOUNG[vendor]}"  # noqa: S608 - our own words
        rows = ask(sql, (which,))

    def followed() -> frozenset[int]:
        found = {cluster_id for (cluster_id,) in rows()}
        _last_looks.update({each: (begun, each in found) for each in asked})
        return frozenset(each for each in {*now, *lately} if _last_looks.get(each, _NEVER)[1])

    return followed


def forget_looks() -> None:
    """Forget what was found, for tests that empty the database."""
    _last_looks.clear()
