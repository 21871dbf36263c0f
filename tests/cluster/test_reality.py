"""Ledger and webhooks against a real API server: what is not stored, and who is not asked."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.cluster.asking import Asking
from tests.cluster.portal import Portal, portal
from tests.cluster.refusing import refusing
from tests.cluster.servers import Cluster, Options, cluster
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.binaries import Binaries

pytestmark = pytest.mark.cluster
PLACE = "reality"
PODS = 1000
LOOK = """
import json, os, sys
import django; django.setup()
from datetime import timedelta
from django.db.models import F
from policies.models import Charge, Cluster, ClusterAlert, QuotaUsage, WebhookHealth
from policies.sync import health, reality
from policies.sync.client import Client
from policies.sync.kubeconfig import parse
cluster = Cluster.objects.get(name="demo")
if {aged}:
    names = ("reserved_at", "created", "updated")
    past = {{name: F(name) - timedelta(minutes=3) for name in names}}
    Charge.objects.filter(cluster=cluster).update(**past)
counts = {{}}
with Client(parse({kubeconfig!r})) as client:
    if {look}:
        counts = reality.look_over(cluster, client, None)
    if {check}:
        health.check(cluster, client)
used = QuotaUsage.objects.filter(cluster=cluster, namespace="reality", quota__name="room").first()
found = WebhookHealth.objects.filter(cluster=cluster).values(
    "canary_refused", "mutating_asked", "configuration").first()
alerts = ClusterAlert.objects.filter(cluster=cluster, resolved=None).values_list("kind", flat=True)
print(json.dumps({{"counts": counts, "used": used.used if used else {{}}, "health": found,
    "alerts": sorted(set(alerts) - {{"certificate-ending"}})}}))
"""
QUOTA: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "room", "namespace": PLACE},
    "spec": {"hard": {"pods": "9000"}},
}


class Place(NamedTuple):
    """A cluster without the plugins, the portal in the path of its requests."""

    cluster: Cluster
    portal: Portal
    asking: Asking

    def look(self, *, aged: bool = False, check: bool = False) -> dict[str, Any]:
        """Have the portal look at the cluster once; ``aged``: as if three minutes had gone by."""
        kubeconfig = self.cluster.kubeconfig.read_text()
        script = LOOK.format(aged=aged, kubeconfig=kubeconfig, look=not check, check=check)
        found: dict[str, Any] = json.loads(self.portal.run(script).splitlines()[-1])
        return found

    @property
    def live(self) -> int:
        return len(self.asking.read("Pod", PLACE).body["items"])


@pytest.fixture(scope="module")
def place(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("reality")
    with (
        cluster(binaries, Options(plugins=False)) as made,
        portal(folder / "portal") as gatehouse,
        contextlib.closing(Asking(made)) as asking,
    ):
        gatehouse.around["GATEHOUSE_CLUSTER_ADDRESSES"] = "127.0.0.0/8"
        asking.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
        (folder / "quota.json").write_text(json.dumps(QUOTA))
        gatehouse.manage("import_manifests", str(folder / "quota.json"), "--cluster", "demo")
        gatehouse.enforce(made, "demo")
        wait_for(
            lambda: Place(made, gatehouse, asking).look(check=True)["health"]["canary_refused"]
        )
        yield Place(made, gatehouse, asking)


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "registry.invalid/app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def pods_used(found: dict[str, Any]) -> int:
    text = found["used"]["pods"]
    return int(text[:-1]) * 1000 if text.endswith("k") else int(text)


def test_creates_that_another_webhook_refuses_leave_the_ledger_within_two_looks(
    place: Place, tmp_path: Any
) -> None:
    with refusing(tmp_path / "other", PLACE) as configuration:
        done = place.cluster.kubectl("apply", "--filename", "-", stdin=configuration)
        assert done.returncode == 0, done.stderr
        wait_for(lambda: not place.asking.create(pod("probe-0"), PLACE, dry=True).is_allowed)
        with ThreadPoolExecutor(8) as threads:
            names = [pod(f"p{number}") for number in range(PODS)]
            answers = threads.map(lambda each: place.asking.create(each, PLACE), names)
            first = place.look()
            assert pods_used(first) >= first["counts"].get("confirmed", 0)
            allowed = sum(answer.is_allowed for answer in answers)
        place.cluster.kubectl("delete", "validatingwebhookconfiguration", "refusing")
    assert allowed == PODS * 7 // 10
    assert place.live >= allowed
    assert pods_used(place.look()) >= place.live
    assert pods_used(place.look(aged=True)) == place.live


def test_pods_that_are_deleted_give_back_what_they_used(place: Place) -> None:
    for name in ("staying", "going"):
        assert place.asking.create(pod(name), PLACE).is_allowed
    before = pods_used(place.look())
    done = place.cluster.kubectl("delete", "pod", "going", "-n", PLACE, "--force")
    assert done.returncode == 0, done.stderr
    assert pods_used(place.look()) == before - 1


def test_canary_is_refused_through_the_api_server(place: Place) -> None:
    found = place.look(check=True)
    assert (found["health"]["canary_refused"], found["health"]["mutating_asked"]) == (True, True)
    assert set(found["health"]["configuration"].values()) == {"ok"}
    assert found["alerts"] == []


def test_webhook_that_is_taken_away_is_noticed_at_the_next_look(place: Place) -> None:
    kind = "validatingwebhookconfiguration"
    kept = place.cluster.kubectl("get", kind, "gatehouse", "-o", "json").stdout
    place.cluster.kubectl("delete", kind, "gatehouse")
    wait_for(lambda: "failing-open" in place.look(check=True)["alerts"])
    assert "webhook-configuration" in place.look(check=True)["alerts"]
    again = json.loads(kept)
    bare = {"name": again["metadata"]["name"], "labels": again["metadata"]["labels"]}
    place.cluster.kubectl("create", "--filename", "-", stdin={**again, "metadata": bare})
    wait_for(lambda: place.look(check=True)["alerts"] == [])
