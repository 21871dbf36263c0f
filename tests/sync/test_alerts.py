"""Alerts are opened once, follow what is known, and close when it is over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sync import alerts
from sync.models import ClusterAlert
from tests import factories

pytestmark = pytest.mark.django_db
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


def test_alert_is_opened_once_and_follows_the_news() -> None:
    cluster = factories.cluster()

    def say(severity: str, message: str) -> None:
        alerts.raise_alert(
            cluster, "certificate", subject="client", severity=severity, message=message
        )

    say(alerts.WARNING, "30 days")
    # A moment of SQLite's is a millisecond, and both may fall into one.
    ClusterAlert.objects.update(since=EARLIER, seen=EARLIER)
    say(alerts.CRITICAL, "1 day")
    [alert] = ClusterAlert.objects.all()
    assert (alert.severity, alert.message) == ("critical", "1 day")
    assert EARLIER == alert.since < alert.seen


def test_alert_that_is_over_is_resolved_and_the_next_one_is_new() -> None:
    cluster = factories.cluster()
    alerts.set_alert(cluster, "failing-open", "not refused", severity=alerts.CRITICAL)
    alerts.set_alert(cluster, "failing-open", "")
    assert ClusterAlert.objects.get().resolved is not None
    alerts.set_alert(cluster, "failing-open", "again")
    assert ClusterAlert.objects.filter(resolved=None).count() == 1
    assert ClusterAlert.objects.count() == 2


def test_subjects_are_alerts_of_their_own() -> None:
    cluster = factories.cluster()
    for subject in ("a", "b"):
        alerts.set_alert(cluster, "certificate", "soon", subject=subject)
    assert alerts.resolve(cluster, "certificate", "a") == 1
    assert alerts.resolve(cluster, "certificate", None) == 1
    assert alerts.resolve(cluster, "certificate", None) == 0


def test_another_clusters_alert_stays() -> None:
    alerts.set_alert(factories.cluster("other"), "failing-open", "not refused")
    assert alerts.resolve(factories.cluster(), "failing-open") == 0
