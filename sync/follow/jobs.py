"""Jobs: work with the database or the blocking client, in a few threads beside the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")
THREADS: Final = 4
"""Jobs at once, each with a database connection of its own."""


class Jobs:
    """The threads of one follower process."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="follower")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work in a thread; returns and raises what it does."""

        def job() -> T:
            try:
                return work(*args, **kwargs)
            finally:
                connection.close()  # back to the pool: a job of another cluster may need it

        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    def close(self) -> None:
        """Wait for the running jobs, and begin no more."""
        self._threads.shutdown(cancel_futures=True)
