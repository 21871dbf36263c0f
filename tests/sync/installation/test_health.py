"""Webhooks that do not do what they must are noticed: by canary, configuration and calendar."""

from __future__ import annotations

import base64
import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from django.utils import timezone

from engine.chain import CANARY_ANNOTATION, canary_message
from policies import services
from policies.models import Cluster, PolicyRevision
from sync.errors import (
    BusyError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from sync.installation import canary, expiry, health, manifests
from sync.metrics import registry
from sync.models import ClusterAlert, ClusterConnection, WebhookHealth
from tests import factories
from tests.sync.pretended import Manifest, PretendedCluster

if TYPE_CHECKING:
    from sync.errors import APIError

pytestmark = pytest.mark.django_db
DENIED = 'admission webhook "validate.gatehouse.dev" denied the request: pods "c" is forbidden: '


@pytest.fixture
def there() -> PretendedCluster:
    """A cluster whose webhooks are as they must be, and refuse canaries."""
    made = PretendedCluster()
    made.on_create = refuse
    for configuration in manifests.webhooks(factories.cluster()):
        made.put(configuration, configuration["kind"])
    return made


def refuse(manifest: Manifest, *, mutated: bool = True) -> Manifest:
    word = manifest["metadata"]["annotations"][CANARY_ANNOTATION]
    raise ForbiddenError(DENIED + canary_message(word, mutated=mutated), code=403)


def fail(error: APIError) -> Any:
    def answer(_manifest: Manifest) -> Manifest:
        raise error

    return answer


def look(there: PretendedCluster) -> WebhookHealth:
    return health.check(factories.cluster(), there)  # type: ignore[arg-type]


def alarms() -> list[tuple[str, str]]:
    found = ClusterAlert.objects.filter(resolved=None).order_by("kind")
    return [(alert.kind, alert.severity) for alert in found]


def test_refused_canary_is_well(there: PretendedCluster) -> None:
    found = look(there)
    assert (found.canary_refused, found.mutating_asked) == (True, True)
    assert set(found.configuration.values()) == {"ok"}
    assert found.last_refused is not None
    assert alarms() == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda manifest: manifest, id="created"),
        pytest.param(
            fail(ForbiddenError('pods "c" is forbidden: exceeded quota: q, requested: pods=1')),
            id="refused-behind-us",
        ),
    ],
)
def test_canary_that_gets_past_us_is_an_alarm_at_once(there: PretendedCluster, answer: Any) -> None:
    there.on_create = answer
    assert look(there).canary_refused is False
    assert alarms() == [("failing-open", "critical")]
    there.on_create = refuse
    look(there)
    assert alarms() == []


def test_webhook_that_is_not_reached_refuses_everybody(there: PretendedCluster) -> None:
    message = 'Internal error occurred: failed calling webhook "validate.gatehouse.dev"'
    there.on_create = fail(BusyError(message, code=500))
    assert look(there).canary_refused is None
    assert alarms() == [("webhook-not-called", "critical")]


def test_mutating_webhook_that_is_not_called_raises_an_alert(there: PretendedCluster) -> None:
    there.on_create = lambda manifest: refuse(manifest, mutated=False)
    look(there)
    assert alarms() == [("mutating-webhook-silent", "warning")]


def test_what_the_installed_webhooks_leave_out_is_noted(there: PretendedCluster) -> None:
    cluster = factories.cluster()
    assert look(there).left_out == ["gatehouse", "kube-node-lease", "kube-system"]
    cluster.covers_kube_system, cluster.excluded_namespaces = True, ["ci"]
    there.objects.clear()
    for configuration in manifests.webhooks(cluster):
        there.put(configuration, configuration["kind"])
    assert look(there).left_out == ["ci", "gatehouse", "kube-node-lease"]


def test_refusal_of_another_canary_is_none(there: PretendedCluster) -> None:
    stale = ForbiddenError(DENIED + canary_message("0123456789abcdef", mutated=True))
    there.on_create = fail(stale)
    assert look(there).canary_refused is None


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("no route"),
        NotFoundError("namespaces not found", code=404),
        ForbiddenError('pods is forbidden: User "x" cannot create resource "pods"', code=403),
        InvalidError("bad", code=422),
    ],
)
def test_doubt_is_an_alarm_before_two_minutes_are_over(
    there: PretendedCluster, error: APIError
) -> None:
    look(there)
    there.on_create = fail(error)
    pass_by(there, MINUTE)
    assert WebhookHealth.objects.get().canary_refused is None
    assert alarms() == []
    pass_by(there, MINUTE)
    assert alarms() == [("canary-unknown", "critical")]


def test_age_of_the_last_refusal_is_measured(there: PretendedCluster) -> None:
    look(there)
    WebhookHealth.objects.update(last_refused=timezone.now() - 2 * MINUTE)
    lag = registry.get_sample_value("gatehouse_canary_lag_seconds", {"cluster": "prod"})
    assert lag == pytest.approx(120, abs=30)


MINUTE = dt.timedelta(seconds=60)


def pass_by(there: PretendedCluster, time: dt.timedelta) -> None:
    """Have so much time gone by since all that was noted, then look again."""
    noted = WebhookHealth.objects.get()
    for name in ("last_refused", "doubtful_since"):
        if (before := getattr(noted, name)) is not None:
            setattr(noted, name, before - time)
    noted.save()
    look(there)


def test_configuration_that_may_not_be_read_is_no_longer_well(there: PretendedCluster) -> None:
    look(there)
    kind = "ValidatingWebhookConfiguration"
    there.failing[kind] = ForbiddenError("cannot get resource", code=403)
    assert look(there).configuration[f"{kind}/gatehouse"].startswith(health.UNREADABLE)
    assert alarms() == [("webhook-configuration", "warning")]
    there.failing[kind] = UnreachableError("no route")
    assert look(there).configuration[f"{kind}/gatehouse"].startswith(health.UNREADABLE)
    del there.failing[kind]
    look(there)
    assert alarms() == []


def test_unreachable_cluster_is_in_doubt(
    there: PretendedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(there)
    monkeypatch.setattr(health.connections, "open_client", _unreachable)
    WebhookHealth.objects.update(doubtful_since=timezone.now() - health.DOUBT)
    health.check_webhooks_of(factories.cluster().pk)
    assert alarms() == [("canary-unknown", "critical")]
    assert WebhookHealth.objects.get().canary_refused is None


def _unreachable(*_args: Any, **_named: Any) -> None:
    raise UnreachableError("no route")


def test_webhooks_that_were_never_there_are_no_alarm(there: PretendedCluster) -> None:
    there.objects.clear()
    there.on_create = lambda manifest: manifest
    found = look(there)
    assert set(found.configuration.values()) == {"missing"}
    assert found.canary_refused is False
    assert alarms() == []


def test_webhooks_that_are_gone_are(there: PretendedCluster) -> None:
    look(there)
    there.objects.clear()
    there.on_create = lambda manifest: manifest
    look(there)
    assert [kind for kind, _ in alarms()] == ["failing-open", *["webhook-configuration"] * 2]


def test_changed_configuration_is_noticed_and_named(there: PretendedCluster) -> None:
    [found] = there.objects["ValidatingWebhookConfiguration"].values()
    found["webhooks"][0]["failurePolicy"] = "Ignore"
    word = look(there).configuration["ValidatingWebhookConfiguration/gatehouse"]
    assert word == "changed: validate.gatehouse.dev: failurePolicy is Ignore, not Fail"
    assert alarms() == [("webhook-configuration", "warning")]


def test_failure_policy_is_compared_with_the_clusters(there: PretendedCluster) -> None:
    cluster = Cluster.objects.get()
    services.set_failure_policy(cluster=cluster, failure_policy="Ignore", user="ada")
    word = look(there).configuration["ValidatingWebhookConfiguration/gatehouse"]
    assert word == "changed: validate.gatehouse.dev: failurePolicy is Fail, not Ignore"
    [found] = there.objects["ValidatingWebhookConfiguration"].values()
    found["webhooks"][0]["failurePolicy"] = "Ignore"
    assert look(there).configuration["ValidatingWebhookConfiguration/gatehouse"] == "ok"
    assert alarms() == []


def test_canary_is_a_pod_that_nothing_else_refuses(there: PretendedCluster) -> None:
    sent: list[Manifest] = []
    there.on_create = lambda manifest: sent.append(manifest) or refuse(manifest)
    look(there)
    [pod] = sent
    assert pod["metadata"]["namespace"] == canary.CANARY_NAMESPACE
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    assert pod["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize(
    ("days", "severity"),
    [(40, ""), (29, "warning"), (6, "critical"), (0.5, "critical"), (-1, "critical")],
)
def test_expiry_alerts_thirty_seven_and_one_days_before(days: float, severity: str) -> None:
    now = timezone.now()
    assert expiry.words_of("x", now + dt.timedelta(days=days), now)[0] == severity


def test_credential_in_use_that_ends_soon_is_an_alarm_until_another_is_used(
    there: PretendedCluster,
) -> None:
    soon = timezone.now() + dt.timedelta(days=3)
    use(there, factories.webhook_secret(expires=soon))
    assert look(there).certificate_expires == soon
    assert alarms() == [("certificate-ending", "critical")]
    use(there, factories.webhook_secret())
    assert look(there).certificate_expires is None
    assert alarms() == []


def use(there: PretendedCluster, key: str) -> None:
    """Have both configurations ask with a credential."""
    there.objects.clear()
    asking = manifests.WebhookClientConfig(key=key)
    for configuration in manifests.webhooks(factories.cluster(), asking):
        there.put(configuration, configuration["kind"])


def test_end_of_a_bundle_in_a_configuration_is_found(there: PretendedCluster) -> None:
    bundle, end = _authority()
    [found] = there.objects["ValidatingWebhookConfiguration"].values()
    found["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
    assert look(there).certificate_expires == end


def _authority() -> tuple[bytes, dt.datetime]:
    """A self-signed certificate, and its end."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = timezone.now().replace(microsecond=0)
    end = now + dt.timedelta(days=90)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, end)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), end


def test_only_connected_clusters_that_are_not_paused_are_looked_at() -> None:
    for name, is_paused in (("prod", False), ("idle", True)):
        ClusterConnection.objects.create(
            cluster=factories.cluster(name),
            server="https://127.0.0.1",
            method="token",
            sealed=b"",
            is_paused=is_paused,
        )
    assert health.clusters_to_check() == [factories.cluster("prod").pk]


# ---- the version of the cluster


def known_version() -> str:
    version: str = Cluster.objects.get().kubernetes_version
    return version


def test_an_upgrade_of_the_cluster_is_noted(there: PretendedCluster) -> None:
    ClusterConnection.objects.create(
        cluster=factories.cluster(),
        method="token",
        sealed=b"",
        server="https://127.0.0.1",
        server_version="v1.35.4",
    )
    look(there)
    assert known_version() == "1.36"
    there.release = "v1.37.2-gke.1"
    look(there)
    assert known_version() == "1.37"
    assert ClusterConnection.objects.get().server_version == "v1.37.2-gke.1"
    revision = PolicyRevision.objects.filter(kind="Cluster").latest("number")
    assert (revision.user, revision.after["spec"]["kubernetesVersion"]) == ("cluster:prod", "1.37")


def test_the_same_version_is_no_other_revision(there: PretendedCluster) -> None:
    look(there)
    before = PolicyRevision.objects.count()
    look(there)
    assert PolicyRevision.objects.count() == before


def test_a_version_that_nobody_knows_stands_for_the_nearest_one_and_says_so_once(
    there: PretendedCluster,
) -> None:
    there.release = "v1.40.1"
    look(there)
    look(there)
    assert known_version() == "1.37"
    assert alarms() == [("unknown-version", "warning")]
    there.release = "v1.37.2"
    look(there)
    assert alarms() == []


@pytest.mark.parametrize("release", ["v2.0.0", "future"])
def test_what_is_no_version_of_kubernetes_changes_nothing(
    there: PretendedCluster, release: str
) -> None:
    look(there)
    there.release = release
    look(there)
    assert known_version() == "1.36"


def test_a_version_that_cannot_be_read_stays(there: PretendedCluster) -> None:
    look(there)
    there.failing["version"] = UnreachableError("no route to host")
    look(there)
    assert known_version() == "1.36"
