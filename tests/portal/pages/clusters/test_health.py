"""Six facts say how a cluster is; a figure is of the last 24 hours, counted once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from admission.models import AuditEvent, Tally, Verdict, decision_id, partitions
from admission.models.tally import stretch_of
from portal.pages.clusters.busiest import busiest
from portal.pages.clusters.health import decisions_of_day, facts_of
from sync.models import ClusterConnection, SyncState, WebhookHealth
from tests import factories

pytestmark = pytest.mark.django_db


def decided(hours: float, verdict: str = Verdict.DENIED, namespace: str = "team") -> None:
    moment = timezone.now() - timedelta(hours=hours)
    partitions.ensure(moment)
    AuditEvent.objects.create(
        id=decision_id.encode(int(moment.timestamp() * 1000), int(hours * 10)),
        duration_us=1,
        cluster="prod",
        phase="validate",
        request_uid="u",
        namespace=namespace,
        verdict=verdict,
        code=403,
        reasons="QuotaExceeded",
    )


def facts(**fields: Any) -> dict[str, tuple[str, str]]:
    cluster = factories.cluster()
    now = timezone.now()
    given = {"state": "ok", "server_version": "v1.36.3", **fields}
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k", **given
    )
    SyncState.objects.create(cluster=cluster, last_success=now)
    WebhookHealth.objects.create(
        cluster=cluster,
        checked=now,
        canary_refused=True,
        configuration={"mutating": "ok"},
        certificate_expires=now + timedelta(days=5, hours=1),
    )
    found = facts_of(cluster, now, objects=9, to_settle=2)
    return {fact.label: (fact.look, fact.figure) for fact in found}


def test_facts_tell_how_a_cluster_is() -> None:
    assert facts() == {
        "API server": ("ok", "v1.36.3"),
        "Webhooks": ("ok", "working"),
        "Sync": ("warning", "ran just now"),
        "Enforced by": ("ok", "portal"),
        "Certificate": ("warning", "5 days left"),
        "Decisions 24 h": ("ok", "0"),
    }


def test_an_unreachable_cluster_is_bad() -> None:
    assert facts(state="unreachable")["API server"] == ("bad", "unreachable")


def test_decisions_of_a_day_are_counted_once() -> None:
    cluster, now = factories.cluster(), timezone.now()
    for hours in (0.5, 3, 30):
        decided(hours)
    assert decisions_of_day(cluster, now)["denied"] == 2
    Tally.objects.create(cluster="prod", start=stretch_of(now - timedelta(hours=3)), denied=1)
    Tally.objects.create(cluster="prod", start=stretch_of(now - timedelta(hours=2)), denied=0)
    assert decisions_of_day(cluster, now)["denied"] == 2


def test_namespaces_with_denials_come_first() -> None:
    cluster = factories.cluster()
    for name in ("calm", "team"):
        factories.namespace(name)
    factories.resource_quota({"pods": "1"})
    decided(1)
    decided(40, namespace="calm")
    found = [(each.name, each.policies, each.denied) for each in busiest(cluster, timezone.now())]
    assert found == [("team", 1, 1), ("calm", 0, 0)]
