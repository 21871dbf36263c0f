"""Count existing objects at once under names that are new in a quota.

Until then reviews that these names would charge are refused (``services.uncounted``). So they never
wait for long: a run that could not count them has the ledger's own charges stand, and says so.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from django.db import transaction

from policies import services
from sync import alerts
from sync.own_writes import our_own_write, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager

    from policies.models import Cluster
    from policies.services import Uncounted

ALERT: Final = "quota-uncounted"
SHOWN: Final = 5
log = logging.getLogger(__name__)


def settle(
    cluster: Cluster,
    quotas: Collection[Uncounted],
    *,
    guard: Callable[[], AbstractContextManager[object]] = transaction.atomic,
) -> None:
    """Have these names count, since all that is there under them is in the ledger by now."""
    if quotas:
        with guard(), our_own_write(cluster):
            services.note_counted(cluster=cluster, quotas=quotas, user=user_of(cluster))
    alerts.resolve(cluster, ALERT)


def give_up(cluster: Cluster, why: str) -> None:
    """Have the ledger's own charges stand for what could not be counted, and say so."""
    quotas = services.uncounted(cluster)
    if not quotas:
        return
    with transaction.atomic(), our_own_write(cluster):
        services.note_counted(cluster=cluster, quotas=quotas, user=user_of(cluster))
    names = [f"{each.namespace}/{each.name} ({', '.join(each.names)})" for each in quotas]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    message = (
        f"of {', '.join(names[:SHOWN])}{more} only what the portal admitted itself counts as used, "
        f"until the cluster can be looked at: {why}"
    )
    log.warning("quotas of %s are not counted: %s", cluster, message)
    alerts.raise_alert(cluster, ALERT, severity=alerts.WARNING, message=message)
