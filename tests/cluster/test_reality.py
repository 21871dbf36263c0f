"""Ledger and webhooks against a real cluster: stored objects, counts, excluded namespaces."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor, wait
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from sync.client import Client
from sync.connect.kubeconfig import parse
from sync.installation import health
from sync.inventory import usage_comparison
from sync.inventory.cluster_states import open_alerts
from tests import factories
from tests.cluster.ledger_setup import COUNTED, PLACE, Place, ledger_setup, quota, whole
from tests.cluster.second_webhook import second_webhook
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tests.cluster.binaries import Binaries

pytestmark = pytest.mark.cluster
PODS = 1000
ROOM = quota(PLACE, pods="9000")
OWN = quota(
    COUNTED,
    **{"pods": "50", "count/pods": "50", "requests.cpu": "10", "secrets": "9"},
    **{"count/configmaps": "9", "replicationcontrollers": "9"},
    **{"count/deployments.apps": "9", "count/widgets.example.com": "9"},
)
WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def place(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("reality")
    with ledger_setup(binaries, folder, [ROOM, OWN], [WIDGETS]) as found:
        yield found


@pytest.fixture(scope="module")
def counting(place: Place) -> Place:
    """The cluster, whose own plugin and controller count the same objects as the portal."""
    if place.cluster.binaries.controller_manager is None:
        pytest.skip("NO kube-controller-manager HERE: the cluster's own figures are not compared")
    assert place.api.create(OWN, COUNTED).is_allowed
    # Its controller discovers new kinds every half minute.
    wait_for(lambda: figures(place).keys() == OWN["spec"]["hard"].keys())
    return place


def figures(place: Place) -> dict[str, str]:
    """The cluster's own figures."""
    found = place.api.read("ResourceQuota", COUNTED, COUNTED).body
    return dict(found.get("status", {}).get("used", {}))


def pod(name: str, cpu: str = "100m") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": "1"}}
    containers = [{"name": "c", "image": "registry.invalid/app:1", "resources": resources}]
    spec = {"containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def apply(place: Place, *items: dict[str, Any]) -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    done = place.cluster.kubectl("create", "-n", COUNTED, "--filename", "-", stdin=whole)
    assert done.returncode == 0, done.stderr


def delete(place: Place, kind: str, name: str, namespace: str = COUNTED) -> None:
    done = place.cluster.kubectl("delete", kind, name, "-n", namespace, "--force", "--wait=false")
    assert done.returncode == 0, done.stderr


def test_creates_that_another_webhook_refuses_leave_the_ledger_within_two_passes(
    place: Place, tmp_path: Path
) -> None:
    before = place.live()
    with refused_by_another(place, tmp_path, PLACE), ThreadPoolExecutor(9) as threads:
        creators = [threads.submit(create_some, place, start) for start in range(8)]
        passes = threads.submit(run_passes_meanwhile, place, creators)
        beyond = []
        while wait(creators, timeout=0.05).not_done:
            beyond.append(sample(place))
    assert sum(one.result() for one in creators) == PODS * 7 // 10
    assert passes.result() > 0
    assert len(beyond) > 20
    assert min(beyond) >= 0
    assert place.used() >= before + PODS
    assert whole(place.run_pass().used[PLACE]["pods"]) >= place.live() == before + PODS * 7 // 10
    assert whole(place.run_pass(aged=True).used[PLACE]["pods"]) == place.live()


def create_some(place: Place, start: int) -> int:
    """Create every eighth of the pods; returns the number of admitted ones."""
    return sum(is_created(place, f"p{number}") for number in range(start, PODS, 8))


def is_created(place: Place, name: str) -> bool:
    """Create a pod; once more if a busy machine answered too late and therefore refused it."""
    answer = place.api.create(pod(name), PLACE)
    for _ in range(9):
        if "failed calling webhook" not in answer.message:
            break
        answer = place.api.create(pod(name), PLACE)
    assert answer.is_allowed or "refusing.example.com" in answer.message, answer.message
    return answer.is_allowed


def run_passes_meanwhile(place: Place, creators: list[Future[int]]) -> int:
    """Run ledger passes until all pods are requested; returns their number."""
    looks = 0
    while wait(creators, timeout=1).not_done:
        place.run_pass()
        looks += 1
    return looks


def sample(place: Place) -> int:
    """The ledger's excess over the existing pods; in this order, because pods are only added."""
    live = place.live()
    return place.used() - live


@contextlib.contextmanager
def refused_by_another(place: Place, folder: Path, namespace: str) -> Iterator[None]:
    """Register a second webhook that refuses pods by their names, after the portal."""
    with second_webhook(folder / "other", namespace) as configuration:
        done = place.cluster.kubectl("apply", "--filename", "-", stdin=configuration)
        assert done.returncode == 0, done.stderr
        wait_for(lambda: not place.api.create(pod("x-0"), namespace, dry=True).is_allowed)
        yield
        place.cluster.kubectl("delete", "validatingwebhookconfiguration", "refusing")


def test_deleted_pods_release_their_usage(place: Place) -> None:
    for name in ("staying", "going"):
        assert place.api.create(pod(name), PLACE).is_allowed
    before = whole(place.run_pass().used[PLACE]["pods"])
    delete(place, "pod", "going", PLACE)
    assert whole(place.run_pass().used[PLACE]["pods"]) == before - 1


# The cluster's own figures


def things() -> list[dict[str, Any]]:
    """One of each object that the quota counts beside pods."""
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("v1", "ConfigMap", {}),
        ("v1", "Secret", {"stringData": {"password": "never requested"}}),
        ("v1", "ReplicationController", {"spec": {"replicas": 0, "template": template}}),
        (
            "apps/v1",
            "Deployment",
            {"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}},
        ),
        ("example.com/v1beta1", "Widget", {}),
    ]
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}, **more}
        for version, kind, more in kinds
    ]


def settle(place: Place) -> dict[str, str]:
    """Run passes until both sides agree; returns their figures."""
    wait_for(lambda: place.run_pass(aged=True).differences[COUNTED] == [])
    found = place.run_pass()
    assert figures(place) == found.used[COUNTED]
    assert found.differences[COUNTED] == []
    assert found.alerts == []
    return found.used[COUNTED]


def test_cluster_and_ledger_count_the_same(counting: Place) -> None:
    apply(counting, *things(), *(pod(name) for name in "abc"))
    counted = ("secrets", "replicationcontrollers", "count/configmaps", "count/deployments.apps")
    ones = dict.fromkeys([*counted, "count/widgets.example.com"], "1")
    three = {"pods": "3", "count/pods": "3", "requests.cpu": "300m"}
    assert settle(counting) == {**ones, **three}
    for thing in things():
        delete(counting, thing["kind"], "one")
    delete(counting, "pod", "a")
    finish(counting, "b")
    one = {"pods": "1", "count/pods": "2", "requests.cpu": "100m"}
    assert settle(counting) == {**dict.fromkeys(ones, "0"), **one}
    resize(counting, "c", "250m")
    assert settle(counting)["requests.cpu"] == "250m"
    for name in "bc":
        delete(counting, "pod", name)
    assert set(settle(counting).values()) == {"0"}


def finish(place: Place, name: str) -> None:
    """Set a pod to succeeded, as its node would."""
    found = place.api.read("Pod", COUNTED, name).body
    found["status"]["phase"] = "Succeeded"
    assert place.api.replace(found, COUNTED, sub="status").is_allowed


def resize(place: Place, name: str, cpu: str) -> None:
    found = place.api.read("Pod", COUNTED, name).body
    found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    answer = place.api.replace(found, COUNTED, sub="resize")
    assert answer.is_allowed, answer.message


def test_difference_is_explained_by_the_objects_behind_it(counting: Place, tmp_path: Path) -> None:
    apply(counting, pod("big", "400m"))
    settle(counting)
    with refused_by_another(counting, tmp_path, COUNTED):
        assert not counting.api.create(pod("lost-0"), COUNTED).is_allowed
    resize(counting, "big", "100m")
    wait_for(lambda: figures(counting)["requests.cpu"] == "100m")
    found = {one["resource"]: one for one in counting.run_pass().differences[COUNTED]}
    assert [one["unexplained"] for one in found.values()] == [""] * 3
    behind = {(one["name"], one["amount"], one["why"]) for one in found["requests.cpu"]["objects"]}
    assert behind == {
        ("big", "300m", usage_comparison.CHANGING),
        ("lost-0", "100m", usage_comparison.NOT_SEEN),
    }
    assert found["pods"]["objects"][0]["name"] == "lost-0"
    assert settle(counting)["requests.cpu"] == "100m"
    delete(counting, "pod", "big")
    settle(counting)


def test_permission_that_is_revoked_is_reported_and_lowers_nothing(place: Place) -> None:
    words = ("role", "gatehouse-counts", "-n", COUNTED)
    kept = json.loads(place.cluster.kubectl("get", *words, "-o", "json").stdout)
    # Both are granted in this namespace alone: what they contain is not ours to read elsewhere.
    granted = {(rule["resources"][0], *rule["verbs"]) for rule in kept["rules"]}
    assert granted == {("secrets", "list", "watch"), ("widgets", "list", "watch")}
    apply(place, {**things()[1], "metadata": {"name": "hidden"}})
    assert place.run_pass().used[COUNTED]["secrets"] == "1"
    place.cluster.kubectl("delete", *words)
    delete(place, "secret", "hidden")
    found = place.run_pass(aged=True)
    blind = [["ledger-blind", "secrets"], ["ledger-blind", "widgets.example.com"]]
    assert sorted(found.alerts) == blind
    assert found.used[COUNTED]["secrets"] == "1"
    bare = {"name": kept["metadata"]["name"], "namespace": COUNTED}
    apply(place, {**kept, "metadata": bare})
    # A suddenly empty list takes effect the second time.
    assert [place.run_pass().used[COUNTED]["secrets"] for _ in range(2)] == ["1", "0"]
    assert place.run_pass().alerts == []


# Excluded requests


@pytest.fixture
def watching(place: Place, settings: Any) -> Iterator[Client]:
    """Observe the cluster by the portal's own account, with unchanged webhooks."""
    settings.GATEHOUSE_CLUSTER_ADDRESSES = [ip_network("127.0.0.0/8")]
    with Client(parse(place.account.read_text())) as client:
        wait_for(lambda: noticed(client) == [])
        yield client


def noticed(client: Client) -> list[str]:
    """Check the webhooks once, as every minute; returns the rows of the dashboard by kind.

    The authority of a test expires within days, which adds a row.
    """
    health.check(factories.cluster("demo"), client)
    kinds = sorted(alert.kind for alert in open_alerts())
    assert kinds.count("certificate-ending") == 1
    return [kind for kind in kinds if kind != "certificate-ending"]


@contextlib.contextmanager
def changed(place: Place, kind: str, **change: Any) -> Iterator[None]:
    """Change the webhook, or delete its configuration; returns the result."""
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/gatehouse"
    before = place.api.ask("GET", path).body
    kept = {name: before["metadata"][name] for name in ("name", "labels")}
    bare = {**before, "metadata": kept}
    assert place.api.ask("DELETE", path).is_allowed
    over = path.rpartition("/")[0]
    if change:
        webhook, *hints = before["webhooks"]
        altered = {**bare, "webhooks": [webhook | change, *hints]}
        assert place.api.ask("POST", over, altered).is_allowed
    try:
        yield
    finally:
        place.api.ask("DELETE", path)
        assert place.api.ask("POST", over, bare).is_allowed


def selector(operator: str, *names: str) -> dict[str, Any]:
    entry = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": list(names)}
    return {"namespaceSelector": {"matchExpressions": [entry]}}


AWAY = {"clientConfig": {"url": "https://127.0.0.1:9/admission/demo/KEY/validate"}}
OPEN = {"failurePolicy": "Ignore"}
LEFT_OUT = ("kube-system", "kube-node-lease", "gatehouse")
CHANGES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "deleted": ("validating", {}, ["failing-open", "webhook-configuration"]),
    "mutating-deleted": ("mutating", {}, ["mutating-webhook-silent", "webhook-configuration"]),
    "fails-open": ("validating", OPEN, ["webhook-configuration"]),
    "narrowed": ("validating", selector("In", "a"), ["failing-open", "webhook-configuration"]),
    "one-more-left-out": (
        "validating",
        selector("NotIn", *LEFT_OUT, COUNTED),
        ["webhook-configuration"],
    ),
    "portal-away": ("validating", AWAY, ["webhook-not-called"]),
    "portal-away-and-fails-open": (
        "validating",
        AWAY | OPEN,
        ["failing-open", "webhook-configuration"],
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("change", CHANGES)
def test_changed_webhook_is_detected_by_the_next_check(
    change: str, place: Place, watching: Client
) -> None:
    kind, fields, expected = CHANGES[change]
    with changed(place, kind, **fields):
        # An API server needs a moment to load it; then one check suffices.
        wait_for(lambda: noticed(watching) == expected)
    wait_for(lambda: noticed(watching) == [])
