"""A real API server accepts the portal's manifests; their permissions suffice exactly."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from engine.errors import DecodeError
from engine.metadata_policy import decode_metadata_policy, validate_metadata_policy
from policies.models import Cluster as Known
from policies.validators import CANARY_NAMESPACE
from sync.client import Client
from sync.connect import probe
from sync.connect.kubeconfig import parse
from sync.connect.permissions import CONFIGURATION
from sync.installation.manifests import WebhookClientConfig, differences, manifests, webhooks
from tests.cluster.portal import Portal, portal
from tests.cluster.servers import Cluster, cluster
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from sync.values import Credentials
    from tests.cluster.binaries import Binaries

pytestmark = pytest.mark.cluster


class Installed(NamedTuple):
    """A cluster with all manifests that its portal printed."""

    cluster: Cluster
    portal: Portal
    text: str


@pytest.fixture(scope="module")
def installed(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with portal(tmp_path_factory.mktemp("portal")) as gatehouse, cluster(binaries) as made:
        gatehouse.around["GATEHOUSE_CLUSTER_ADDRESSES"] = "127.0.0.0/8"
        text = gatehouse.manage("cluster_manifests", "demo", "--ca-file", authority(gatehouse))
        objects = [one for one in yaml.safe_load_all(text) if one]
        found = Installed(made, gatehouse, text)
        assert apply(found, objects).returncode == 0
        wait_for(lambda: "metadatapolicies" in made.kubectl("api-resources").stdout)
        yield found


def authority(gatehouse: Portal) -> str:
    return str(gatehouse.authority.certificate)


def apply(where: Installed, objects: list[Any], *words: str) -> CompletedProcess[str]:
    whole = {"apiVersion": "v1", "kind": "List", "items": objects}
    return where.cluster.kubectl("apply", "--filename", "-", *words, stdin=whole)


@pytest.fixture
def account(installed: Installed) -> Credentials:
    """The portal's own account, by a token from the API server."""
    token = installed.cluster.kubectl("create", "token", "gatehouse", "--namespace", "gatehouse")
    whole = json.loads(installed.cluster.kubeconfig.read_text())
    whole["users"][0]["user"] = {"token": token.stdout.strip()}
    return parse(json.dumps(whole))


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    from ipaddress import ip_network  # noqa: PLC0415 - here alone

    settings.GATEHOUSE_CLUSTER_ADDRESSES = [ip_network("127.0.0.0/8")]


def test_output_is_taken_as_it_is_and_again(installed: Installed, tmp_path: Any) -> None:
    file = tmp_path / "manifests.yaml"
    file.write_text(installed.text)
    done = installed.cluster.kubectl("apply", "--filename", str(file))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(list(yaml.safe_load_all(installed.text)))
    assert [line for line in lines if not line.endswith("unchanged")] == []


@pytest.mark.django_db
def test_account_has_all_required_permissions(account: Credentials) -> None:
    with Client(account) as client:
        found = probe.probe(client)
    assert (found.state, found.missing) == ("ok", ())
    assert found.cluster_uid
    assert found.clock_skew == pytest.approx(0, abs=5)


FORBIDDEN = [
    ("get", "", "secrets", ""),
    ("list", "", "secrets", ""),
    ("get", "", "pods", ""),
    ("get", "", "configmaps", ""),
    ("watch", "", "secrets", ""),
    ("list", "example.com", "widgets", ""),
    ("create", "", "pods", "default"),
    ("update", "", "namespaces", ""),
    ("delete", "", "pods", CANARY_NAMESPACE),
    ("update", "", "pods/status", ""),
    ("update", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""),
    ("get", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""),
    ("list", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""),
    ("create", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("impersonate", "", "users", ""),
    ("create", "", "serviceaccounts/token", "gatehouse"),
]


@pytest.mark.parametrize("permission", FORBIDDEN, ids=lambda permission: " ".join(permission[:3:2]))
def test_account_has_no_other_permissions(
    permission: tuple[str, str, str, str], account: Credentials
) -> None:
    with Client(account) as client:
        assert not client.can(*permission)


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_live_configuration_does_not_differ(kind: str, account: Credentials) -> None:
    with Client(account) as client:
        live = client.get(f"{kind}WebhookConfiguration", CONFIGURATION)
    assert live
    assert differences(Known(name="demo"), live) == []
    live["webhooks"][0]["failurePolicy"] = "Fail" if kind == "Mutating" else "Ignore"
    assert differences(Known(name="demo"), live) != []


def test_portal_applies_it_itself_and_keeps_the_credential(installed: Installed) -> None:
    before = installed.portal.manage("webhook_credential", "demo")
    words = ("--ca-file", authority(installed.portal), "--apply", "--force-conflicts")
    admin = str(installed.cluster.kubeconfig)
    installed.portal.manage("cluster_manifests", "demo", *words, "--kubeconfig", admin)
    assert installed.portal.manage("webhook_credential", "demo") == before


def test_portal_connects_by_its_account(installed: Installed) -> None:
    admin = str(installed.cluster.kubeconfig)
    said = installed.portal.manage("connect_cluster", "demo", "--kubeconfig", admin, "-o", "json")
    assert json.loads(said)["state"] == "ok"
    assert json.loads(said)["missingPermissions"] == []


def pod(namespace: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "probe", "namespace": namespace, "annotations": annotations}
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def create(where: Installed, manifest: dict[str, Any]) -> CompletedProcess[str]:
    words = ("create", "--dry-run=server", "--output", "json", "--filename", "-")
    return where.cluster.kubectl(*words, stdin=manifest)


@pytest.mark.parametrize("namespace", ["default", CANARY_NAMESPACE])
def test_canary_is_refused_after_both_webhooks(namespace: str, installed: Installed) -> None:
    canary = pod(namespace, **{"policy.gatehouse.dev/canary": "abc"})
    # An API server needs a moment to load new webhooks.
    wait_for(lambda: "canary abc was refused" in create(installed, canary).stderr)
    assert "mutating webhook: " in create(installed, canary).stderr


@pytest.mark.parametrize("namespace", ["kube-system", "kube-node-lease", "gatehouse"])
def test_namespaces_left_out_cause_no_calls(namespace: str, installed: Installed) -> None:
    canary = pod(namespace, **{"policy.gatehouse.dev/canary": "abc"})
    assert create(installed, canary).returncode == 0


def test_expressions_hold_for_all_kinds(installed: Installed) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
    }
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "default"},
    }
    for manifest in (event, lease):
        done = create(installed, manifest)
        assert done.returncode == 0, done.stderr


FOLLOWED = """
import django; django.setup()
from datetime import timedelta
from django.db.models.functions import Now
from policies.models import Cluster, ClusterFollower
heartbeat = Now() + timedelta(hours=1)  # young for as long as the tests take
ClusterFollower.objects.update_or_create(
    cluster=Cluster.objects.get(name="demo"), defaults={"heartbeat": heartbeat}
)
"""
TAKEN = """
import django; django.setup()
from policies.models import OncomingWrite
for write in OncomingWrite.objects.order_by("pk"):
    print(write.operation, write.kind, f"{write.namespace}/{write.name}", bool(write.object_uid))
OncomingWrite.objects.all().delete()
"""


def test_writes_of_namespaces_and_policies_are_announced(installed: Installed) -> None:
    kubectl = installed.cluster.kubectl
    installed.portal.run(FOLLOWED)
    installed.portal.run(TAKEN)
    small = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": "hinted"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
    }
    steps = [
        kubectl("create", "namespace", "hinted"),
        kubectl("create", "namespace", "dry", "--dry-run=server"),
        kubectl("label", "namespace", "hinted", "team=a"),
        kubectl("annotate", "namespace", "hinted", "note=a"),
        kubectl("label", "namespace", "gatehouse", "team=a"),
        create(installed, small),  # a dry run
        kubectl("create", "--filename", "-", stdin=small),
        kubectl("label", "limitrange", "small", "--namespace", "hinted", "team=a"),
        kubectl("delete", "limitrange", "small", "--namespace", "hinted", "--dry-run=server"),
        kubectl("delete", "limitrange", "--all", "--namespace", "hinted"),
        kubectl("delete", "namespace", "hinted", "--wait=false"),
    ]
    assert [done.stderr for done in steps if done.returncode] == []
    assert installed.portal.run(TAKEN).splitlines() == [
        "CREATE Namespace hinted/hinted True",
        "UPDATE Namespace hinted/hinted True",
        "CREATE LimitRange hinted/small True",
        "UPDATE LimitRange hinted/small True",
        "DELETE LimitRange hinted/small True",
        "DELETE Namespace hinted/hinted True",
    ]


ACTION: dict[str, Any] = {"policyAction": {"reject": True}}
LONG = "a" * 64


def rule(selector: dict[str, Any], *, over: str = "labelSelector") -> dict[str, Any]:
    return {"policyPredicate": {over: selector}, **ACTION}


def expression(operator: str, *values: str, key: str = "a") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def sets(**updates: Any) -> dict[str, Any]:
    return {"policyAction": updates}


ANNOTATIONS = "annotationSelector"
RULES: dict[str, Any] = {
    "reject": ACTION,
    "nothing": sets(),
    "reject-and-update": sets(reject=True, updatedLabels={"a": "b"}),
    "everything": rule({}),
    "absent": {"policyPredicate": {"labelSelector": None}, **ACTION},
    "no-action": {"policyPredicate": {}},
    "seeds-spelling": {"PolicyAction": {"reject": True}},
    "in": rule(expression("In", "a", "b")),
    "in-none": rule(expression("In")),
    "not-in-none": rule(expression("NotIn")),
    "exists": rule(expression("Exists")),
    "exists-some": rule(expression("Exists", "a")),
    "does-not-exist-some": rule(expression("DoesNotExist", "a")),
    "bad-operator": rule(expression("Gt", "1")),
    "bad-key": rule(expression("Exists", key="-a")),
    "no-key": rule(expression("Exists", key="")),
    "two-slashes": rule(expression("Exists", key="a/b/c")),
    "long-key": rule(expression("Exists", key=LONG)),
    "prefixed-key": rule(expression("Exists", key="example.com/" + LONG[:63])),
    "bad-value": rule(expression("In", "a b")),
    "long-value": rule(expression("In", LONG)),
    "empty-value": rule(expression("In", "")),
    "line-break": rule(expression("In", "a\n")),
    "free-annotation": rule(expression("In", "a b\n" + LONG), over=ANNOTATIONS),
    "upper-annotation": rule(expression("Exists", key="Example.com/A"), over=ANNOTATIONS),
    "upper-label": rule(expression("Exists", key="Example.com/A")),
    "labels": rule({"matchLabels": {"a": "b"}}),
    "bad-label-key": rule({"matchLabels": {"a b": "b"}}),
    "bad-label": rule({"matchLabels": {"a": "b c"}}),
    "annotations": rule({"matchLabels": {"a": "b c"}}, over=ANNOTATIONS),
    "update": sets(updatedLabels={"a": "b"}, updatedAnnotations={"b": "c d"}),
    "bad-update": sets(updatedLabels={"a": "b c"}),
    "bad-update-key": sets(updatedAnnotations={"a b": "c"}),
    "protected-label": sets(updatedLabels={"kubernetes.io/os": "a"}),
    "protected-annotation": sets(updatedAnnotations={"scheduler.alpha.kubernetes.io/QoS": "a"}),
    "allowed-annotation": sets(updatedAnnotations={"scheduler.alpha.kubernetes.io/name": "a"}),
    "allowed-label": sets(updatedLabels={"app.kubernetes.io/name": "a"}),
    "number": sets(updatedLabels={"a": 1}),
    "text-for-bool": sets(reject="yes"),
}
ACCEPTED = 17
"""The number of policies that the portal accepts; otherwise an empty schema would pass."""


def policy(*rules: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": {"name": "p", "namespace": "gatehouse"},
        "spec": {"rules": list(rules), **spec},
    }


def is_accepted_here(manifest: dict[str, Any]) -> bool:
    try:
        return not validate_metadata_policy(decode_metadata_policy(manifest))
    except DecodeError:
        return False


def is_accepted_there(where: Installed, manifest: dict[str, Any]) -> bool:
    done = create(where, manifest)
    assert done.returncode == 0 or "is invalid" in done.stderr or "BadRequest" in done.stderr, (
        done.stderr
    )
    return done.returncode == 0


SEEDS_SPELLING = "seeds-spelling"


@pytest.mark.parametrize("name", RULES)
def test_custom_resource_accepts_what_the_portal_accepts(name: str, installed: Installed) -> None:
    manifest = policy(RULES[name])
    # The old spelling is read from files; it is an unknown field of the custom resource.
    expected = is_accepted_here(manifest) and name != SEEDS_SPELLING
    assert is_accepted_there(installed, deepcopy(manifest)) is expected


def test_table_has_both_verdicts() -> None:
    assert sum(is_accepted_here(policy(one)) for one in RULES.values()) == ACCEPTED


@pytest.mark.parametrize(("count", "accepted"), [(64, True), (65, False)])
def test_as_many_rules_as_the_portal_accepts(
    count: int, *, accepted: bool, installed: Installed
) -> None:
    manifest = policy(*[ACTION] * count, ratchet=True, strict=False)
    assert is_accepted_here(manifest) is accepted
    assert is_accepted_there(installed, manifest) is accepted


def test_stored_policy_contains_reject_and_shows_its_columns(installed: Installed) -> None:
    manifest = policy(sets(updatedLabels={"a": "b"}), strict=True)
    manifest["metadata"]["annotations"] = {"policy.gatehouse.dev/enforcement": "warn"}
    manifest["metadata"]["name"] = "stored"
    assert apply(installed, [manifest]).returncode == 0
    words = ("get", "mdp", "stored", "--namespace", "gatehouse")
    stored = json.loads(installed.cluster.kubectl(*words, "--output", "json").stdout)
    assert stored["spec"]["rules"][0]["policyAction"]["reject"] is False
    assert stored["metadata"]["generation"] == 1
    head, line = installed.cluster.kubectl(*words).stdout.splitlines()
    assert head.split() == ["NAME", "ENFORCEMENT", "RATCHET", "STRICT", "AGE"]
    assert line.split()[:2] == ["stored", "warn"]


AWAY = WebhookClientConfig(portal_url="https://127.0.0.1:9", key="key")
DESERTED = Known(
    name="demo",
    covers_kube_system=True,
    portal_namespace="elsewhere",
    excluded_namespaces=["ci"],
)


@pytest.fixture(scope="module")
def deserted(binaries: Binaries) -> Iterator[Cluster]:
    """A cluster whose webhooks, including kube-system, lead to a portal that does not answer."""
    with cluster(binaries) as made:
        assert made.kubectl("create", "namespace", "ci").returncode == 0
        take(made, manifests(DESERTED, AWAY))
        wait_for(lambda: "failed calling webhook" in dry_run(made, pod("default")).stderr)
        yield made


def take(made: Cluster, objects: list[dict[str, Any]]) -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": objects}
    assert made.kubectl("apply", "--filename", "-", stdin=whole).returncode == 0


def dry_run(made: Cluster, manifest: dict[str, Any]) -> CompletedProcess[str]:
    return made.kubectl("create", "--dry-run=server", "--filename", "-", stdin=manifest)


def test_unavailable_portal_cannot_be_bypassed(deserted: Cluster) -> None:
    refused = dry_run(deserted, pod("default")).stderr
    assert "validate.gatehouse.dev" in refused
    assert "mutate.gatehouse.dev" not in refused


@pytest.mark.parametrize("namespace", ["kube-system", "kube-node-lease", "elsewhere"])
def test_unavailable_portal_blocks_no_system_pod(namespace: str, deserted: Cluster) -> None:
    done = dry_run(deserted, pod(namespace))
    assert done.returncode == 0, done.stderr


def test_excluded_namespace_is_reviewed_once_it_is_covered_again(deserted: Cluster) -> None:
    done = dry_run(deserted, pod("ci"))
    assert done.returncode == 0, done.stderr
    covering = Known(name="demo", covers_kube_system=True, portal_namespace="elsewhere")
    try:
        take(deserted, webhooks(covering, AWAY))
        wait_for(lambda: "validate.gatehouse.dev" in dry_run(deserted, pod("ci")).stderr)
    finally:
        take(deserted, webhooks(DESERTED, AWAY))
    wait_for(lambda: dry_run(deserted, pod("ci")).returncode == 0)


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_portal_of_another_namespace_finds_its_webhooks_unchanged(
    kind: str, deserted: Cluster
) -> None:
    with Client(parse(deserted.kubeconfig.read_text())) as client:
        live = client.get(f"{kind}WebhookConfiguration", CONFIGURATION)
    assert live
    assert differences(DESERTED, live) == []
    assert differences(Known(name="demo", covers_kube_system=True), live) != []


def test_kubeconfig_of_the_account_follows_the_guide(installed: Installed) -> None:
    made, file = installed.cluster, installed.cluster.folder / "gatehouse.kubeconfig"
    file.write_text(made.kubectl("config", "view", "--raw", "--flatten", "--minify").stdout)
    token = made.kubectl("create", "token", "gatehouse", "--namespace", "gatehouse").stdout.strip()
    for words in (
        ("set-credentials", "gatehouse", "--token", token),
        ("set-context", "--current", "--user", "gatehouse"),
    ):
        assert made.kubectl("config", *words, kubeconfig=file).returncode == 0
    words = ("connect_cluster", "demo", "--kubeconfig", str(file), "-o", "json")
    said = json.loads(installed.portal.manage(*words))
    assert (said["state"], said["missingPermissions"]) == ("ok", [])
