"""``python -m bench follower``: what following 100 clusters with 50,000 pods costs one process."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import connection
from django.utils import timezone

from bench import fleet, machine, report
from policies import services
from policies.models import Charge, Cluster, ClusterFollower
from sync.connect import connections, seal_keys
from sync.models import SyncState
from sync.values import Credentials
from tests.cluster.certificates import issue, make_authority
from tests.processes import ROOT, free_port, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

CLUSTERS: Final = 100
QUIET: Final = 60.0
"""Seconds for which nothing happens while CPU is measured."""
LONGEST: Final = 900.0
"""Seconds until all is counted for the first time."""
GOALS: Final = {"memory, MB": 400.0, "CPU when quiet, cores": 1 / 3}


def measure() -> int:
    """Follow, then do nothing. 0: every goal is met; 2: one was missed."""
    seal_keys.ensure_keys()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server, authority = stack.enter_context(_fleet(folder))
        for number in range(CLUSTERS):
            _connect(f"cluster-{number}", f"{server}/cluster-{number}", authority)
        words = [sys.executable, "manage.py", "follow"]
        begun = time.monotonic()
        follower = stack.enter_context(running(words, dict(os.environ), folder / "follow.log"))
        pods = CLUSTERS * fleet.PODS
        while not _is_counted(follower, folder, pods):
            if time.monotonic() - begun > LONGEST:
                raise RuntimeError(f"{_counted()} of {pods} pods after {LONGEST:.0f} s")
            time.sleep(0.5)
        found = {"seconds until all is counted": time.monotonic() - begun}
        before = machine.usage_of(follower.pid)
        time.sleep(QUIET)
        after = machine.usage_of(follower.pid)
        found["memory, MB"] = after.resident / 1e6
        found["CPU when quiet, cores"] = (after.cpu - before.cpu) / QUIET
    table = [["100 clusters, 50,000 pods", "", ""]]
    for name, value in found.items():
        goal = GOALS.get(name)
        verdict = "" if goal is None else f"< {goal:.2f} {'PASS' if value < goal else 'FAIL'}"
        table.append([name, f"{value:.2f}", verdict])
    print(f"\n{connection.vendor}\n")
    print(report.table(table))
    report.save({"database": connection.vendor, "found": found}, name="follower")
    return 2 if any(found[name] >= goal for name, goal in GOALS.items()) else 0


def _is_counted(follower: subprocess.Popen[bytes], folder: Path, pods: int) -> bool:
    if follower.poll() is not None:
        raise RuntimeError((folder / "follow.log").read_text()[-2_000:])
    are_open = ClusterFollower.objects.exclude(heartbeat=None).count() == CLUSTERS
    return are_open and _counted() == pods


def _counted() -> int:
    return Charge.objects.filter(resource="pods").count()


@contextlib.contextmanager
def _fleet(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The pretended API servers: their address, and the authority of their certificate."""
    authority = make_authority(folder)
    pair, port = issue(folder, "tls", authority, subject="/CN=fleet"), free_port()
    words = [sys.executable, "-m", "bench.fleet", str(port), str(pair.certificate), str(pair.key)]
    with running(words, {**os.environ, "PYTHONPATH": str(ROOT)}, folder / "fleet.log"):
        yield f"https://127.0.0.1:{port}", authority.certificate.read_bytes()


def _connect(name: str, server: str, authority: bytes) -> None:
    cluster = services.save_cluster(cluster=Cluster(name=name), user="bench").instance
    connections.connect(cluster, Credentials(server, authority, "token"), "bench")
    # As after a first import: the follower compares lists, no worker does.
    SyncState.objects.create(cluster=cluster, last_full_pass=timezone.now())
