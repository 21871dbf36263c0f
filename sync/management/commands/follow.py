"""``follow``: the process that follows all connected clusters, beside web, worker and beat."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand

from sync.follow.process import FollowerProcess


class Command(BaseCommand):
    """Watch all connected clusters until SIGTERM or Ctrl-C."""

    help = (
        "Watch all connected clusters until SIGTERM or Ctrl-C: changes of policies, namespaces "
        "and counted objects are stored at once, and policies that the portal owns are written. "
        "Several may run: each cluster has one follower; another takes over when it is gone."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run the event loop."""
        asyncio.run(_follow())


async def _follow() -> None:
    process = FollowerProcess()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, process.stop)
    await process.run()
