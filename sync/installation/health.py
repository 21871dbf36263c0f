"""Check of a cluster's webhooks: canary, live ones, expiry into WebhookHealth and alerts."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from policies.db.clock import read_clock
from policies.models import Cluster
from sync import alerts, policy_writes
from sync.connect import connections
from sync.errors import APIError, ForbiddenError
from sync.installation import canary, compiled_canary, expiry, manifests
from sync.installation.canary import CanaryResult
from sync.installation.configurations import VALIDATING_KIND, left_out_by
from sync.models import ClusterAlert, ClusterConnection, SyncRun, WebhookHealth
from sync.values import Limits

if TYPE_CHECKING:
    from sync.client import Client
    from sync.installation.canary import CanaryCall

FAILING_OPEN: Final = "failing-open"
NOT_CALLED: Final = "webhook-not-called"
DOUBTFUL: Final = "canary-unknown"
SILENT: Final = "mutating-webhook-silent"
CONFIGURATION: Final = "webhook-configuration"
ENDING: Final = "certificate-ending"
ONE_ENFORCES: Final = "enforced-by-one"
OK: Final = "ok"
MISSING: Final = "missing"
UNREADABLE: Final = "unreadable"
LIMITS: Final = Limits(seconds=20.0, read_seconds=10.0)
_REFUSED_STATES: Final = (ClusterConnection.State.UNAUTHORIZED, ClusterConnection.State.UNTRUSTED)
DOUBT: Final = dt.timedelta(seconds=100)
"""Without a refused canary for so long, an alert is due: one unknown outcome may be chance."""


def check(cluster: Cluster, client: Client) -> WebhookHealth:
    """Check a cluster once, store the findings, raise and resolve alerts.

    Raises nothing for errors of the cluster. A cluster whose webhooks were never installed gets no
    alerts: nothing there can fail yet.
    """
    _note_version(cluster, client)
    health, _ = WebhookHealth.objects.get_or_create(cluster=cluster)
    live_configurations = _live_configurations(cluster, client, health)
    flight = canary.call_canary(client)
    _note_flight(health, flight, read_clock())
    expiry_ends = expiry.ends_of(cluster, live_configurations)
    health.certificates = {name: end.isoformat() for name, end in expiry_ends.items()}
    health.certificate_expires = min(expiry_ends.values(), default=None)
    health.save()
    is_installed = bool(live_configurations) or health.last_refused is not None
    _alert_flight(cluster, health, flight, is_installed=is_installed)
    _check_compiled(cluster, client, flight)
    for name, state_word in health.configuration.items():
        changed_text = f"{name} is {state_word}" if is_installed and state_word != OK else ""
        severity = alerts.CRITICAL if state_word == MISSING else alerts.WARNING
        alerts.set_alert(cluster, CONFIGURATION, changed_text, subject=name, severity=severity)
    _alert_ends(cluster, expiry_ends)
    return health


def _note_version(cluster: Cluster, client: Client) -> None:
    """Note an upgrade of the cluster; a version that cannot be read now stays the stored one."""
    try:
        release = str(client.version()["gitVersion"])[:100]
    except APIError:
        return
    connection = ClusterConnection.objects.filter(cluster=cluster)
    connection.exclude(server_version=release).update(server_version=release)
    policy_writes.note_version(cluster, release)


def clusters_to_check() -> list[int]:
    """The primary keys of the clusters to check: all that are connected and not paused."""
    unpaused = ClusterConnection.objects.filter(is_paused=False).order_by("cluster_id")
    return list(unpaused.values_list("cluster_id", flat=True))


def check_webhooks_of(cluster_id: int) -> WebhookHealth | None:
    """Connect to a cluster and check it; an unreachable one is stored as unknown."""
    cluster = Cluster.objects.select_related("connection").filter(pk=cluster_id).first()
    if cluster is None:
        return None
    connection = getattr(cluster, "connection", None)
    # Waiting cures none of these, and an untrusted server must not see the credential: a person
    # has to test the connection first.
    if connection is not None and connection.state in _REFUSED_STATES:
        return note_unreachable(cluster, f"it gets no requests: {connection.message}")
    try:
        with connections.open_client(cluster, limits=LIMITS) as client:
            return check(cluster, client)
    except APIError as error:
        return note_unreachable(cluster, f"{error.reason}: {error}")


def note_unreachable(cluster: Cluster, message: str) -> WebhookHealth:
    """Store that a cluster could not be reached; its webhooks may be failing open meanwhile."""
    health, _ = WebhookHealth.objects.get_or_create(cluster=cluster)
    flight = canary.CanaryCall(outcome=CanaryResult.UNKNOWN, message=message)
    _note_flight(health, flight, read_clock())
    health.save()
    _alert_flight(cluster, health, flight, is_installed=health.last_refused is not None)
    return health


def _live_configurations(
    cluster: Cluster, client: Client, health: WebhookHealth
) -> list[dict[str, Any]]:
    """Compare both configurations; one that cannot be read now keeps its last finding."""
    live_configurations, configuration_words = [], dict(health.configuration)
    for wanted_one in manifests.webhooks(cluster):
        name = f"{wanted_one['kind']}/{wanted_one['metadata']['name']}"
        try:
            configuration = client.get(wanted_one["kind"], wanted_one["metadata"]["name"])
        except ForbiddenError as error:
            configuration_words[name] = f"{UNREADABLE}: {error.message}"
            continue
        except APIError:
            continue
        if configuration is None:
            configuration_words[name] = MISSING
            continue
        live_configurations.append(configuration)
        if configuration["kind"] == VALIDATING_KIND:
            health.left_out = left_out_by(configuration)
        differing = manifests.differences(cluster, configuration)
        configuration_words[name] = f"changed: {'; '.join(differing)}" if differing else OK
    health.configuration = configuration_words
    return live_configurations


def _note_flight(health: WebhookHealth, flight: CanaryCall, now: dt.datetime) -> None:
    health.checked = now
    health.canary_message = flight.message
    health.canary_milliseconds = flight.milliseconds
    health.mutating_asked = flight.mutated
    health.canary_refused = {CanaryResult.REFUSED: True, CanaryResult.LET_THROUGH: False}.get(
        flight.outcome
    )
    if flight.outcome is CanaryResult.REFUSED:
        health.last_refused, health.doubtful_since = now, None
    elif health.doubtful_since is None:
        # The failure may have begun right after the last refusal, nearly a minute ago.
        health.doubtful_since = health.last_refused or now


def _alert_flight(
    cluster: Cluster, health: WebhookHealth, flight: CanaryCall, *, is_installed: bool
) -> None:
    outcome = flight.outcome if is_installed else CanaryResult.REFUSED
    # An unknown outcome neither raises nor resolves: the last known state may still hold.
    if outcome is not CanaryResult.UNKNOWN:
        text = f"pods are let in without the portal: {flight.message}"
        is_open = outcome is CanaryResult.LET_THROUGH
        alerts.set_alert(cluster, FAILING_OPEN, text * is_open, severity=alerts.CRITICAL)
        text = f"pods are refused, since the portal is not reached: {flight.message}"
        is_closed = outcome is CanaryResult.NOT_CALLED
        alerts.set_alert(cluster, NOT_CALLED, text * is_closed, severity=alerts.CRITICAL)
    checked, since = health.checked, health.doubtful_since
    doubt_lasts = checked is not None and since is not None and checked - since >= DOUBT
    is_doubtful = outcome is CanaryResult.UNKNOWN and doubt_lasts
    text = f"it is unknown whether the cluster calls the portal: {flight.message}"
    alerts.set_alert(cluster, DOUBTFUL, text * is_doubtful, severity=alerts.CRITICAL)
    if flight.mutated is not None:
        text = "the mutating webhook is not called: pods get no defaults and no metadata policies"
        alerts.set_alert(cluster, SILENT, text * (not flight.mutated))


def _check_compiled(cluster: Cluster, client: Client, flight: CanaryCall) -> None:
    """Alert where only one enforces the compiled policies: the portal, or the API server."""
    passes = SyncRun.objects.filter(
        cluster=cluster, mode=SyncRun.Mode.SYNC, state=SyncRun.State.DONE
    )
    last_pass = passes.order_by("-pk").first()
    if last_pass is None or not last_pass.counts.get("compiled"):
        alerts.resolve(cluster, ONE_ENFORCES)
        return
    outcome, message = compiled_canary.call_compiled_canary(client)
    if CanaryResult.UNKNOWN in (outcome, flight.outcome):
        return  # the last known state may still hold
    by_server, by_portal = (each is CanaryResult.REFUSED for each in (outcome, flight.outcome))
    text = ""
    if by_portal and not by_server:
        text = f"only the portal enforces the policies that the API server is to enforce: {message}"
    elif by_server and not by_portal:
        text = f"only the API server enforces, and compiled policies alone: {flight.message}"
    alerts.set_alert(cluster, ONE_ENFORCES, text)


def _alert_ends(cluster: Cluster, ends: dict[str, dt.datetime]) -> None:
    now = read_clock()
    # A certificate or credential that was replaced cannot expire any more.
    ending_alerts = ClusterAlert.objects.filter(cluster=cluster, kind=ENDING, resolved=None)
    for subject in ending_alerts.exclude(subject__in=ends).values_list("subject", flat=True):
        alerts.resolve(cluster, ENDING, subject)
    for name, end in ends.items():
        severity, text = expiry.words_of(name, end, now)
        alerts.set_alert(cluster, ENDING, text, subject=name, severity=severity or alerts.WARNING)
