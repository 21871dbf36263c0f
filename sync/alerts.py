"""ClusterAlert rows: raised, updated and resolved by kind and subject; severities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, transaction

from policies.db.clock import read_clock
from sync.models import ClusterAlert

if TYPE_CHECKING:
    from policies.models import Cluster

CRITICAL: Final = ClusterAlert.Severity.CRITICAL.value
WARNING: Final = ClusterAlert.Severity.WARNING.value


def raise_alert(
    cluster: Cluster, kind: str, *, subject: str = "", severity: str, message: str
) -> ClusterAlert:
    """Open an alert, or refresh the open one with this severity and message.

    ``kind`` is a stable word, ``subject`` the thing concerned, such as a webhook's name. A kind and
    a subject have one open alert at most, even if several processes raise it at once.
    """
    now = read_clock()
    # Cut to the column: too long a subject must not lose its alert.
    which = {"cluster": cluster, "kind": kind, "subject": subject[:400], "resolved": None}
    news = {"severity": severity, "message": message, "seen": now}
    if ClusterAlert.objects.filter(**which).update(**news):
        return ClusterAlert.objects.get(**which)
    try:
        # A savepoint: the constraint's error must not abort the caller's transaction.
        with transaction.atomic():
            return ClusterAlert.objects.create(**which, **news, since=now)
    except IntegrityError:
        # Another process opened it between our update and our insert.
        ClusterAlert.objects.filter(**which).update(**news)
        return ClusterAlert.objects.get(**which)


def resolve(cluster: Cluster, kind: str, subject: str | None = "") -> int:
    """Close the open alert; returns how many were open. ``None`` stands for all subjects."""
    open_alerts = ClusterAlert.objects.filter(cluster=cluster, kind=kind, resolved=None)
    if subject is not None:
        open_alerts = open_alerts.filter(subject=subject[:400])
    return open_alerts.update(resolved=read_clock())


def set_alert(
    cluster: Cluster, kind: str, message: str, *, subject: str = "", severity: str = WARNING
) -> None:
    """Raise the alert if there is a message, resolve it if there is none."""
    if message:
        raise_alert(cluster, kind, subject=subject, severity=severity, message=message)
    else:
        resolve(cluster, kind, subject)
