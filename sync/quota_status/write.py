"""``write_statuses``: PUT each status with its version; outcomes counted, a missing right alerted.

A conflict needs no retry here: the watch brings the object that overtook us, and what is due is
computed anew.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from sync import alerts
from sync.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from sync.quota_status.memory import StatusOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.models import Cluster
    from sync.client import Client
    from sync.quota_status.due import StatusWrite
    from sync.quota_status.memory import StatusMemory

REFUSED: Final = "quota-status"
"""The alert's kind."""
SHOWN: Final = 5
log = logging.getLogger(__name__)


def write_statuses(
    cluster: Cluster,
    client: Client,
    writes: Iterable[StatusWrite],
    memory: StatusMemory,
    *,
    now: float,
) -> tuple[StatusMemory, Counter[str]]:
    """Write the statuses that need not wait; returns the memory then, and counts by outcome.

    One quota's trouble does not stop the others. While a permission is missing there is an alert.
    Raises the ``APIError`` of a cluster that cannot be written to at all; what was written until
    then shows in the watch.
    """
    results = [(write, _outcome_of(client, write)) for write in memory.ready(writes, now=now)]
    memory = memory.after(results, now=now)
    counts = Counter(outcome.value for _, outcome in results)
    if counts[StatusOutcome.WRITTEN] or counts[StatusOutcome.FORBIDDEN]:
        alerts.set_alert(cluster, REFUSED, _alert_message(memory))
    return memory, counts


def _outcome_of(client: Client, write: StatusWrite) -> StatusOutcome:
    try:
        client.replace_status(write.manifest)
    except ConflictError:
        return StatusOutcome.CONFLICT
    except NotFoundError:
        return StatusOutcome.GONE
    except ForbiddenError as error:
        log.info("the status of %s/%s was refused: %s", *write.place, error.message)
        return StatusOutcome.FORBIDDEN
    except InvalidError as error:
        log.warning("the status of %s/%s is invalid: %s", *write.place, error.message)
        return StatusOutcome.INVALID
    return StatusOutcome.WRITTEN


def _alert_message(memory: StatusMemory) -> str:
    """The alert's text; empty if every status may be written."""
    names = ["/".join(place) for place in memory.forbidden]
    if not names:
        return ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (
        f"kubectl shows old usage of {', '.join(names[:SHOWN])}{more}: the portal may not update "
        "resourcequotas/status; cluster_manifests prints the permission that is missing"
    )
