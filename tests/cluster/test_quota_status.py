"""Statuses of quotas on a real API server: alone, and beside Kubernetes' own controller."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from policies import snapshot
from policies.ledger.release import confirm, release
from sync import reconcile
from sync.client import Client
from sync.quota_status import StatusMemory, due_statuses, write_statuses
from sync.quota_status.memory import REFUSED_PAUSE
from sync.values import FIELD_MANAGER
from tests import builders, charges, factories
from tests.cluster.ledger_setup import CONTROLLER
from tests.cluster.servers import Options, cluster
from tests.cluster.test_client import credentials
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sync.quota_status import StatusWrite
    from tests.cluster.binaries import Binaries
    from tests.cluster.servers import Cluster as ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
_places = itertools.count()
Manifest = dict[str, Any]


class Scene:
    """A namespace with a quota ``rq`` on both sides."""

    def __init__(self, plane: ControlPlane, client: Client, hard: dict[str, str]) -> None:
        self.plane, self.client, self.place = plane, client, f"status-{next(_places)}"
        self.memory = StatusMemory()
        snapshot.forget()
        plane.kubectl("create", "namespace", self.place)
        quota = factories.manifest("ResourceQuota", {"hard": hard}, name="rq", namespace=self.place)
        quota["metadata"]["labels"] = {"kept": "yes"}
        factories.apply(quota)
        self.put(quota)

    def put(self, manifest: Manifest) -> None:
        done = self.plane.kubectl("apply", "-n", self.place, "-f", "-", stdin=manifest)
        assert done.returncode == 0, done.stderr

    def live(self) -> Manifest:
        found = self.client.get("ResourceQuota", "rq", self.place)
        assert found is not None
        return found

    def status(self) -> Manifest:
        return dict(self.live().get("status") or {})

    def due(self) -> list[StatusWrite]:
        return due_statuses(factories.cluster(), {(self.place, "rq"): self.live()})

    def write(self, writes: list[StatusWrite], *, now: float) -> dict[str, int]:
        self.memory, counts = write_statuses(
            factories.cluster(), self.client, writes, self.memory, now=now
        )
        return dict(counts)

    def charge(self, uid: str, *, cpu: str = "250m") -> None:
        pod = builders.pod(
            builders.container(requests={"cpu": cpu}), name=uid, uid=uid, namespace=self.place
        )
        asked = builders.request(pod, namespace=self.place, uid=uid)
        assert charges.admit(asked) == [True]


@pytest.fixture
def client(bare_cluster: ControlPlane) -> Iterator[Client]:
    with Client(credentials(bare_cluster)) as made:
        yield made


def test_what_is_confirmed_is_what_kubectl_shows(
    bare_cluster: ControlPlane, client: Client
) -> None:
    scene = Scene(bare_cluster, client, {"pods": "1k", "requests.cpu": "2", "limits.x.io/y": "1"})
    scene.charge("a")
    scene.charge("b")
    confirm("prod", resource="pods", uid="a")
    before = scene.live()
    assert scene.write(scene.due(), now=0.0) == {"written": 1}
    assert scene.status() == {
        "hard": {"pods": "1k", "requests.cpu": "2", "limits.x.io/y": "1"},
        "used": {"pods": "1", "requests.cpu": "250m"},
    }
    after = scene.live()
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert reconcile.used_by_others(after, FIELD_MANAGER) == {}
    described = bare_cluster.kubectl("describe", "quota", "rq", "-n", scene.place).stdout
    assert "requests.cpu   250m  2" in described
    assert scene.due() == []
    release("prod", resource="pods", uid="a")
    assert scene.write(scene.due(), now=1.0) == {"written": 1}
    assert scene.status()["used"] == {"pods": "0", "requests.cpu": "0"}


def test_a_status_of_another_version_is_refused(bare_cluster: ControlPlane, client: Client) -> None:
    scene = Scene(bare_cluster, client, {"pods": "9"})
    stale = scene.due()
    bare_cluster.kubectl("label", "quota", "rq", "-n", scene.place, "new=label")
    assert scene.write(stale, now=0.0) == {"conflict": 1}
    assert scene.live()["metadata"]["labels"]["new"] == "label"
    assert scene.write(scene.due(), now=1.0) == {"written": 1}
    assert scene.live()["metadata"]["labels"]["new"] == "label"
    scene.charge("c")
    confirm("prod", resource="pods", uid="c")
    last = scene.due()
    bare_cluster.kubectl("delete", "quota", "rq", "-n", scene.place)
    assert scene.write(last, now=2.0) == {"gone": 1}
    hard = {"hard": {"pods": "9"}}
    scene.put(factories.manifest("ResourceQuota", hard, name="rq", namespace=scene.place))
    assert scene.write(last, now=2.0 + REFUSED_PAUSE) == {"conflict": 1}


def test_an_apply_of_the_quota_meets_no_conflict_with_its_status(
    bare_cluster: ControlPlane, client: Client
) -> None:
    scene = Scene(bare_cluster, client, {"pods": "9"})
    scene.write(scene.due(), now=0.0)
    quota = factories.manifest(
        "ResourceQuota", {"hard": {"pods": "8"}}, name="rq", namespace=scene.place
    )
    applied = client.apply(quota, force=True)
    assert (applied["spec"]["hard"], applied["status"]["hard"]) == ({"pods": "8"}, {"pods": "9"})
    assert "status" not in json.dumps(list(reconcile.managers(applied)))
    assert scene.write(scene.due(), now=1.0) == {"written": 1}
    assert scene.status()["hard"] == {"pods": "8"}


def test_beside_the_controller_both_agree_and_nobody_fights(binaries: Binaries) -> None:
    options = Options(controllers=(CONTROLLER,))
    with cluster(binaries, options) as plane, Client(credentials(plane)) as client:
        scene = Scene(plane, client, {"count/configmaps": "9"})
        maps = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}"}}
            for number in range(3)
        ]
        for number, made in enumerate(maps):
            scene.put(made)
            obj = {**made, "metadata": {**made["metadata"], "namespace": scene.place}}
            request = builders.request(
                obj, resource="configmaps", namespace=scene.place, uid=f"m{number}"
            )
            assert charges.admit(request) == [True]
            confirm("prod", resource="configmaps", uid=f"m{number}")
        wait_for(lambda: scene.status().get("used") == {"count/configmaps": "3"})
        assert scene.due() == []
        # The controller sees a deletion that our ledger does not know yet: neither insists.
        plane.kubectl("delete", "configmap", "m0", "-n", scene.place)
        wait_for(lambda: scene.status()["used"] == {"count/configmaps": "2"})
        assert scene.write(scene.due(), now=0.0) == {"written": 1}
        assert scene.status()["used"] == {"count/configmaps": "3"}
        plane.kubectl("delete", "configmap", "m1", "-n", scene.place)
        wait_for(lambda: scene.status()["used"] == {"count/configmaps": "1"})
        assert len(scene.due()) == 1
        assert scene.write(scene.due(), now=4.9) == {}
        for uid in ("m0", "m1"):
            release("prod", resource="configmaps", uid=uid)
        assert scene.due() == []
