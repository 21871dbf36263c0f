"""Gatehouse as it is operated: its processes, PostgreSQL and Redis, connected to one cluster."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from portal.health.probe import is_ready
from tests.cluster.background import redis
from tests.cluster.certificates import issue, make_authority
from tests.cluster.portal import Portal
from tests.faults.database import postgres_in
from tests.faults.portals import surroundings
from tests.processes import free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.servers import Cluster

NAME: Final = "e2e"
"""The cluster's name in the portal."""
_PROCESSES: Final = """
import django, json; django.setup()
from portal.dev.supervisor.children import commands, environment
print(json.dumps({name: [words, environment(name)] for name, words in commands().items()}))
"""
"""The processes of ``make run``: one that is added there runs here, too."""
_FOLLOWED: Final = """
import time
import django; django.setup()
from datetime import timedelta
from policies.db.clock import read_clock
from policies.models import ClusterFollower
deadline = time.monotonic() + 110
while not ClusterFollower.objects.filter(heartbeat__gt=read_clock() - timedelta(seconds=10)):
    assert time.monotonic() < deadline, list(ClusterFollower.objects.values())
    time.sleep(0.2)
"""
"""Waits until all watches of the cluster are open."""
_RBAC: Final = "rbac.authorization.k8s.io"
_COUNT_ALL: Final[list[dict[str, Any]]] = [
    {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "gatehouse-counts-all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}],
    },
    {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "gatehouse-counts-all"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "gatehouse-counts-all"},
        "subjects": [{"kind": "ServiceAccount", "name": "gatehouse", "namespace": "gatehouse"}],
    },
]
"""The tests count Secrets, and custom resources whose names nobody knows before: an administrator's
explicit choice."""
_CANARY: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "annotations": {"policy.gatehouse.dev/canary": "e2e"}},
    "spec": {"containers": [{"name": "c", "image": "registry.invalid/app:1"}]},
}


@contextlib.contextmanager
def gatehouse(cluster: Cluster, logs: Path, authority: str) -> Iterator[Portal]:
    """All processes, connected, with that authority and webhooks that act; logs stay in ``logs``.

    Nothing is owned by the portal, so it follows what others create in the cluster.
    """
    # Not under pytest's folder: only its owner may read it, and PostgreSQL runs as another user.
    with contextlib.ExitStack() as stack:
        folder, database = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"gatehouse-{name}-")))
            for name in ("e2e", "postgres")
        )
        address = stack.enter_context(postgres_in(database)).address("postgres")
        broker = stack.enter_context(redis(folder))
        made = _prepared(folder, address, broker)
        made.manage("migrate", "--verbosity", "0")
        for name, (words, environment) in json.loads(made.run(_PROCESSES)).items():
            stack.enter_context(running(words, environment, logs / f"gatehouse-{name}.log"))
        wait_for(lambda: is_ready(made.around))
        _install(made, cluster)
        _connect(made, cluster)
        if authority != "native":
            made.manage("cluster_authority", NAME, authority, "--yes", "--reason", "plugins off")
        wait_for(lambda: _refuses_canary(cluster))
        yield made


def _prepared(folder: Path, database: str, broker: str) -> Portal:
    authority = make_authority(folder)
    pair = issue(folder, "tls", authority, subject="/CN=gatehouse")
    port = free_port()
    around = {
        **surroundings(folder, database, port),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "GATEHOUSE_BROKER_URL": broker,
        "GATEHOUSE_CLUSTER_ADDRESSES": "127.0.0.0/8",
        "GATEHOUSE_EXTERNAL_URL": f"https://127.0.0.1:{port}",
        "GATEHOUSE_LOG_LEVEL": "INFO",
        "GATEHOUSE_TLS_CERTIFICATE": str(pair.certificate),
        "GATEHOUSE_TLS_KEY": str(pair.key),
        # What one process learns, the other one must know, too.
        "GATEHOUSE_WEB_WORKERS": "2",
    }
    return Portal(folder, port, authority, around, {})


def _install(made: Portal, cluster: Cluster) -> None:
    words = ["--create", "--ca-file", str(made.authority.certificate), "--output", "json"]
    items = json.loads(made.manage("cluster_manifests", NAME, *words))
    items["items"] += _COUNT_ALL
    done = cluster.kubectl("apply", "--server-side", "--filename", "-", stdin=items)
    assert done.returncode == 0, done.stderr


def _connect(made: Portal, cluster: Cluster) -> None:
    """Connect by the portal's own account; wait for the first import, and for its follower."""
    words = ["--namespace", "gatehouse", "--duration", "24h"]
    token = cluster.kubectl("create", "token", "gatehouse", *words)
    assert token.returncode == 0, token.stderr
    whole = json.loads(cluster.kubeconfig.read_text())
    whole["users"][0]["user"] = {"token": token.stdout.strip()}
    made.manage("connect_cluster", NAME, "--kubeconfig", "-", stdin=json.dumps(whole))
    made.manage("sync", NAME, "--import", "--follow")
    made.run(_FOLLOWED)


def _refuses_canary(cluster: Cluster) -> bool:
    """Whether the API server calls the webhooks: it needs a moment to load new ones."""
    words = ["create", "--dry-run=server", "--namespace", "default", "--filename", "-"]
    return "canary e2e was refused" in cluster.kubectl(*words, stdin=_CANARY).stderr
