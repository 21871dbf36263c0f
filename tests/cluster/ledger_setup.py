"""A cluster whose requests a portal sees, and that portal's look at it by its own account."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.cluster.api_client import Asking
from tests.cluster.portal import Portal, portal
from tests.cluster.servers import Cluster, Options, cluster
from tests.processes import ROOT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.binaries import Binaries

PLACE: Final = "reality"
"""Where a quota of the portal alone counts pods."""
COUNTED: Final = "counted"
"""Where a quota counts many things, in the cluster and in the portal."""
CONTROLLER: Final = "resourcequota-controller"
_LOOK: Final = """
import json, sys
import django; django.setup()
from datetime import timedelta
from django.db import connection
from django.db.models import F
from policies.models import Charge, Cluster, QuotaUsage
from sync.models import ClusterAlert, UsageComparison
from sync.passes import ledger_pass
from sync.client import Client
from sync.connect.kubeconfig import parse
cluster = Cluster.objects.get(name="demo")
for line in sys.stdin:
    asked = json.loads(line)
    if asked["aged"]:
        names = ("reserved_at", "created", "updated")
        past = {name: F(name) - timedelta(minutes=3) for name in names}
        Charge.objects.filter(cluster=cluster).update(**past)
    with Client(parse(asked["kubeconfig"])) as client:
        counts = ledger_pass.look_over(cluster, client, None)
    used = QuotaUsage.objects.filter(cluster=cluster).values_list("namespace", "used")
    alerts = ClusterAlert.objects.filter(cluster=cluster, resolved=None)
    differences = UsageComparison.objects.filter(cluster=cluster)
    found = {"counts": counts, "used": dict(used),
        "differences": dict(differences.values_list("namespace", "differences")),
        "alerts": list(alerts.values_list("kind", "subject"))}
    connection.close()
    print(json.dumps(found), flush=True)
"""


class Look(NamedTuple):
    """What came of one look, by namespace: amounts used, differences to the cluster's figures."""

    counts: dict[str, int]
    used: dict[str, dict[str, str]]
    differences: dict[str, list[dict[str, Any]]]
    alerts: list[list[str]]


class Place(NamedTuple):
    """The cluster, the portal in the path of its requests, and the administrator's questions."""

    cluster: Cluster
    portal: Portal
    asking: Asking
    worker: subprocess.Popen[str]

    @property
    def account(self) -> Path:
        """The kubeconfig of the portal's own account, with the rights that were printed for it."""
        return self.cluster.folder / "account.kubeconfig"

    def look(self, *, aged: bool = False) -> Look:
        """Have the portal look at the cluster once; ``aged``: as if three minutes had gone by."""
        asked = {"aged": aged, "kubeconfig": self.account.read_text()}
        assert self.worker.stdin
        assert self.worker.stdout
        self.worker.stdin.write(json.dumps(asked) + "\n")
        self.worker.stdin.flush()
        line = self.worker.stdout.readline()
        assert line, (self.portal.folder / "looking.log").read_text()
        return Look(**json.loads(line))

    def live(self, namespace: str = PLACE) -> int:
        """How many pods there are."""
        found = self.asking.ask("GET", f"/api/v1/namespaces/{namespace}/pods?limit=1").body
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)

    def used(self, namespace: str = PLACE, name: str = "pods") -> int:
        """What the ledger says is used of a whole number at this moment."""
        file = self.portal.folder / "gatehouse.sqlite3"
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reading:
            rows = reading.execute(
                "SELECT used FROM policies_quotausage WHERE namespace = ?", [namespace]
            )
            return whole(json.loads(rows.fetchone()[0]).get(name, "0"))


def whole(text: str) -> int:
    """Read a whole number as Kubernetes writes it."""
    return int(text[:-1]) * 1000 if text.endswith("k") else int(text)


def quota(namespace: str, **hard: str) -> dict[str, Any]:
    """A quota of a namespace, named like it."""
    metadata = {"name": namespace, "namespace": namespace}
    spec = {"hard": hard}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


@contextlib.contextmanager
def looked_at(
    binaries: Binaries, folder: Path, quotas: list[dict[str, Any]], more: list[dict[str, Any]]
) -> Iterator[Place]:
    """A cluster and its portal, which knows the quotas; ``more`` is made in the cluster first."""
    controllers = (CONTROLLER,) if binaries.controller_manager else ()
    with (
        cluster(binaries, Options(controllers=controllers)) as made,
        portal(folder / "portal") as gatehouse,
        contextlib.closing(Asking(made)) as asking,
        _looking(gatehouse) as worker,
    ):
        place = Place(made, gatehouse, asking, worker)
        for name in dict.fromkeys(each["metadata"]["namespace"] for each in quotas):
            asking.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        whole_list = {"apiVersion": "v1", "kind": "List", "items": more}
        done = made.kubectl("create", "--filename", "-", stdin=whole_list)
        assert done.returncode == 0, done.stderr
        (folder / "quotas.json").write_text(json.dumps({**whole_list, "items": quotas}))
        gatehouse.manage(
            "import_manifests",
            str(folder / "quotas.json"),
            "--cluster",
            "demo",
            "--create-namespaces",
        )
        gatehouse.enforce(made, "demo")
        _write_account(made)
        wait_for(lambda: is_refused(place))
        yield place


@contextlib.contextmanager
def _looking(gatehouse: Portal) -> Iterator[subprocess.Popen[str]]:
    """A process among the portal's own code that looks whenever a line asks it to."""
    gatehouse.around["GATEHOUSE_CLUSTER_ADDRESSES"] = "127.0.0.0/8"
    with (
        (gatehouse.folder / "looking.log").open("wb") as log,
        subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", _LOOK],
            env=gatehouse.around,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as worker,
    ):
        yield worker


def _write_account(made: Cluster) -> None:
    token = made.kubectl("create", "token", "gatehouse", "--namespace", "gatehouse")
    assert token.returncode == 0, token.stderr
    known = json.loads(made.kubeconfig.read_text())
    known["users"][0]["user"] = {"token": token.stdout.strip()}
    (made.folder / "account.kubeconfig").write_text(json.dumps(known))


def is_refused(place: Place) -> bool:
    """Whether a canary is, after both webhooks."""
    container = {"name": "c", "image": "i"}
    annotations = {"policy.gatehouse.dev/canary": "abc"}
    metadata = {"name": "probe", "annotations": annotations}
    spec = {"containers": [container]}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return "mutating webhook: " in place.asking.create(probe, "default", dry=True).message
