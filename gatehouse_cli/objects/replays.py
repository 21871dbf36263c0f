"""Replays that were requested: waited for with progress, cancelled by an interrupt; reports."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gatehouse_cli.client import operations
from gatehouse_cli.console import progress
from gatehouse_cli.exit_codes import CliError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gatehouse_cli.client.answers import ReplayDetailJson, ReplayReportJson
    from gatehouse_cli.client.session import PortalSession

PAUSE: Final = 0.5
"""Seconds between two looks at a replay."""
_OPEN: Final = ("queued", "running")


@contextmanager
def cancelling(session: PortalSession, uids: Sequence[str]) -> Iterator[None]:
    """Cancel replays where the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        for uid in uids:
            session.call(operations.REPLAYS_CANCEL_CREATE, names={"uid": uid})
        raise


def waited_for(session: PortalSession, uid: str) -> ReplayDetailJson:
    """The replay once it has ended."""
    names = {"uid": uid}
    found = _begun(session, uid)
    seen = 0
    with progress("replaying", max(found["total"], 1)) as advance:
        while found["state"] in _OPEN:
            time.sleep(PAUSE)
            found = session.call(operations.REPLAYS_RETRIEVE, names=names)
            advance(found["done"] - seen)
            seen = found["done"]
    return found


def _begun(session: PortalSession, uid: str) -> ReplayDetailJson:
    """The replay once a worker knows how many decisions there are."""
    with progress("waiting for a worker"):
        while True:
            found = session.call(operations.REPLAYS_RETRIEVE, names={"uid": uid})
            if found["state"] not in _OPEN or found["total"]:
                return found
            time.sleep(PAUSE)


def report_of(found: ReplayDetailJson) -> ReplayReportJson:
    """The report of a replay; raises CliError for one that came to nothing."""
    report = found["report"]
    if report is None:
        reason = f": {found['problem']}" if found["problem"] else ""
        raise CliError(f"the replay {found['uid']} is {found['state']}{reason}")
    return report
