"""HealthFacts of a cluster: API server, webhooks, sync, enforcement, certificates, decisions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Sum

from admission.models import AuditEvent, Tally
from admission.models.tally import added, stretch_of
from admission.models.tally import counted as tallied
from engine.policy import Authority
from policies.plurals import counted
from portal.pages.clusters.status import CONNECTION_WORDS, webhook_mark
from portal.pages.shell.times import in_words
from sync.models import ClusterConnection

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from policies.models import Cluster

DAY: Final = timedelta(days=1)
EXPIRES_SOON: Final = 14
"""Days before its end from which a certificate is warned of."""
_COLUMNS: Final = ("allowed", "mutated", "would_deny", "denied")
OK: Final = "ok"
WARNING: Final = "warning"
BAD: Final = "bad"
NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class HealthFact:
    """One box: a figure with its state, and a line below it."""

    label: str
    look: str
    figure: str
    under: str


def facts_of(
    cluster: Cluster, now: dt.datetime, *, objects: int, to_settle: int
) -> list[HealthFact]:
    """The six boxes of a cluster, in their order."""
    return [
        _server(cluster),
        _webhooks(cluster, now),
        _sync(cluster, objects=objects, to_settle=to_settle),
        _enforced(cluster),
        _certificate(cluster, now),
        _decisions(cluster, now),
    ]


def _server(cluster: Cluster) -> HealthFact:
    connection = getattr(cluster, "connection", None)
    if connection is None:
        return HealthFact("API server", NONE, "not connected", "it may request decisions")
    is_fine = connection.state == ClusterConnection.State.OK
    words = CONNECTION_WORDS.get(connection.state, connection.state)
    tested = f"tested {in_words(connection.tested)}" if connection.tested else "not tested yet"
    figure = connection.server_version if is_fine and connection.server_version else words
    return HealthFact("API server", OK if is_fine else BAD, figure, tested)


def _webhooks(cluster: Cluster, now: dt.datetime) -> HealthFact:
    mark = webhook_mark(cluster, now)
    health = getattr(cluster, "webhook_health", None)
    looks = {"ok": OK, "none": NONE, "failing-open": BAD}
    if health is None or health.checked is None:
        under = "no canary was sent yet"
    elif health.canary_refused:
        under = f"canary refused {in_words(health.last_refused or health.checked)}"
    else:
        under = f"checked {in_words(health.checked)}"
    return HealthFact("Webhooks", looks.get(mark.look, WARNING), mark.words, under)


def _sync(cluster: Cluster, *, objects: int, to_settle: int) -> HealthFact:
    timetable = getattr(cluster, "sync_state", None)
    under = f"{objects:,} compared, {to_settle:,} to settle"
    if timetable is None or timetable.last_success is None:
        return HealthFact("Sync", NONE, "never ran", under)
    connection = getattr(cluster, "connection", None)
    is_calm = not (to_settle or timetable.failures or (connection and connection.is_paused))
    ran = f"ran {in_words(timetable.last_success)}"
    return HealthFact("Sync", OK if is_calm else WARNING, ran, under)


def _enforced(cluster: Cluster) -> HealthFact:
    if cluster.authority == Authority.NATIVE:
        return HealthFact("Enforced by", OK, "API server", "portal: MetadataPolicies")
    return HealthFact("Enforced by", OK, "portal", f"failure policy {cluster.failure_policy}")


def _certificate(cluster: Cluster, now: dt.datetime) -> HealthFact:
    health = getattr(cluster, "webhook_health", None)
    end = health.certificate_expires if health else None
    if end is None:
        return HealthFact("Certificate", NONE, "not known yet", "of the webhooks")
    days = (end - now).days
    if days < 0:
        return HealthFact("Certificate", BAD, "expired", f"since {end:%-d %b %Y}")
    look = OK if days > EXPIRES_SOON else WARNING
    return HealthFact(
        "Certificate", look, f"{counted(days, 'days')} left", f"until {end:%-d %b %Y}"
    )


def _decisions(cluster: Cluster, now: dt.datetime) -> HealthFact:
    counts = decisions_of_day(cluster, now)
    total = sum(counts[name] for name in _COLUMNS)
    return HealthFact("Decisions 24 h", OK, f"{total:,}", f"{counts['denied']:,} denied")


def decisions_of_day(cluster: Cluster, now: dt.datetime) -> Mapping[str, int]:
    """The decisions of the last 24 hours by outcome: tallied ones, and the newest one by one."""
    since, newest = stretch_of(now - DAY), Tally.objects.edge()
    # The newest tally may be incomplete: from there on decisions are counted.
    border = max(newest, since) if newest else since
    older = Tally.objects.filter(cluster=cluster.name, start__gte=since, start__lt=border)
    sums: dict[str, Any] = older.aggregate(**{name: Sum(name) for name in (*_COLUMNS, "dry_run")})
    live = AuditEvent.objects.for_cluster(cluster.name).filter(created__gte=border)
    return added([sums, *tallied(live).values()])
