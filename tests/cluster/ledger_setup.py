"""A cluster with a portal in the path of its requests, and passes of the portal's ledger."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.cluster.api_client import ApiClient
from tests.cluster.portal import Portal, portal
from tests.cluster.servers import Cluster, Options, cluster
from tests.processes import ROOT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.binaries import Binaries

PLACE: Final = "reality"
"""The namespace in which a quota of the portal alone counts pods."""
COUNTED: Final = "counted"
"""The namespace in which a quota counts many kinds, in the cluster and in the portal."""
CONTROLLER: Final = "resourcequota-controller"
_PASS_SCRIPT: Final = """
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
    options = json.loads(line)
    if options["aged"]:
        names = ("reserved_at", "created", "updated")
        past = {name: F(name) - timedelta(minutes=3) for name in names}
        Charge.objects.filter(cluster=cluster).update(**past)
    with Client(parse(options["kubeconfig"])) as client:
        counts = ledger_pass.compare_ledger(cluster, client, None)
    used = QuotaUsage.objects.filter(cluster=cluster).values_list("namespace", "used")
    alerts = ClusterAlert.objects.filter(cluster=cluster, resolved=None)
    differences = UsageComparison.objects.filter(cluster=cluster)
    found = {"counts": counts, "used": dict(used),
        "differences": dict(differences.values_list("namespace", "differences")),
        "alerts": list(alerts.values_list("kind", "subject"))}
    connection.close()
    print(json.dumps(found), flush=True)
"""


class PassResult(NamedTuple):
    """The result of one ledger pass, by namespace: used amounts, differences to the cluster."""

    counts: dict[str, int]
    used: dict[str, dict[str, str]]
    differences: dict[str, list[dict[str, Any]]]
    alerts: list[list[str]]


class Place(NamedTuple):
    """The cluster, the portal in the path of its requests, and the administrator's client."""

    cluster: Cluster
    portal: Portal
    api: ApiClient
    worker: subprocess.Popen[str]

    @property
    def account(self) -> Path:
        """The kubeconfig of the portal's own account, with the permissions printed for it."""
        return self.cluster.folder / "account.kubeconfig"

    def run_pass(self, *, aged: bool = False) -> PassResult:
        """Run one ledger pass; ``aged``: as if three minutes had passed."""
        options = {"aged": aged, "kubeconfig": self.account.read_text()}
        assert self.worker.stdin
        assert self.worker.stdout
        self.worker.stdin.write(json.dumps(options) + "\n")
        self.worker.stdin.flush()
        line = self.worker.stdout.readline()
        assert line, (self.portal.folder / "ledger-pass.log").read_text()
        return PassResult(**json.loads(line))

    def live(self, namespace: str = PLACE) -> int:
        """The number of pods."""
        found = self.api.ask("GET", f"/api/v1/namespaces/{namespace}/pods?limit=1").body
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)

    def used(self, namespace: str = PLACE, name: str = "pods") -> int:
        """The ledger's current used amount of a whole number."""
        file = self.portal.folder / "gatehouse.sqlite3"
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reading:
            rows = reading.execute(
                "SELECT used FROM policies_quotausage WHERE namespace = ?", [namespace]
            )
            return whole(json.loads(rows.fetchone()[0]).get(name, "0"))


def whole(text: str) -> int:
    """Parse a whole number in Kubernetes' format."""
    return int(text[:-1]) * 1000 if text.endswith("k") else int(text)


def quota(namespace: str, **hard: str) -> dict[str, Any]:
    """A quota named like its namespace."""
    metadata = {"name": namespace, "namespace": namespace}
    spec = {"hard": hard}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


@contextlib.contextmanager
def ledger_setup(
    binaries: Binaries, folder: Path, quotas: list[dict[str, Any]], more: list[dict[str, Any]]
) -> Iterator[Place]:
    """A cluster and its portal, which knows the quotas; ``more`` is created in the cluster."""
    controllers = (CONTROLLER,) if binaries.controller_manager else ()
    with (
        cluster(binaries, Options(controllers=controllers)) as made,
        portal(folder / "portal") as gatehouse,
        contextlib.closing(ApiClient(made)) as api,
        _pass_worker(gatehouse) as worker,
    ):
        place = Place(made, gatehouse, api, worker)
        for name in dict.fromkeys(each["metadata"]["namespace"] for each in quotas):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
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
def _pass_worker(gatehouse: Portal) -> Iterator[subprocess.Popen[str]]:
    """A process with the portal's code that runs a pass for each line of input."""
    gatehouse.around["GATEHOUSE_CLUSTER_ADDRESSES"] = "127.0.0.0/8"
    with (
        (gatehouse.folder / "ledger-pass.log").open("wb") as log,
        subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", _PASS_SCRIPT],
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
    """Whether a canary is refused, after both webhooks."""
    container = {"name": "c", "image": "i"}
    annotations = {"policy.gatehouse.dev/canary": "abc"}
    metadata = {"name": "probe", "annotations": annotations}
    spec = {"containers": [container]}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return "mutating webhook: " in place.api.create(probe, "default", dry=True).message
