"""Open, update and resolve alerts about clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, transaction

from policies.ledger import read_clock
from sync.models import ClusterAlert

if TYPE_CHECKING:
    from policies.models import Cluster

CRITICAL: Final = ClusterAlert.Severity.CRITICAL.value
WARNING: Final = ClusterAlert.Severity.WARNING.value


def raise_alert(
    cluster: Cluster, kind: str, *, subject: str = "", severity: str, message: str
) -> ClusterAlert:
    """Open an alert, or say again that it is not over; severity and message are the newest.

    ``kind`` is a stable word, ``subject`` what it is about, such as a webhook's name. There is one
    open alert for both at most, however many notice it at once.
    """
    now = read_clock()
    which = {"cluster": cluster, "kind": kind, "subject": subject[:400], "resolved": None}
    news = {"severity": severity, "message": message, "seen": now}
    if ClusterAlert.objects.filter(**which).update(**news):
        return ClusterAlert.objects.get(**which)
    try:
        with transaction.atomic():
            return ClusterAlert.objects.create(**which, **news, since=now)
    except IntegrityError:
        # Somebody else has just opened it.
        ClusterAlert.objects.filter(**which).update(**news)
        return ClusterAlert.objects.get(**which)


def resolve(cluster: Cluster, kind: str, subject: str | None = "") -> int:
    """Close an alert that is over; returns how many were open. ``None`` stands for all subjects."""
    found = ClusterAlert.objects.filter(cluster=cluster, kind=kind, resolved=None)
    if subject is not None:
        found = found.filter(subject=subject[:400])
    return found.update(resolved=read_clock())


def set_alert(
    cluster: Cluster, kind: str, message: str, *, subject: str = "", severity: str = WARNING
) -> None:
    """Raise it where there is something to say, resolve it where there is not."""
    if message:
        raise_alert(cluster, kind, subject=subject, severity=severity, message=message)
    else:
        resolve(cluster, kind, subject)
