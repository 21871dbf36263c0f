"""A control plane as Kubernetes' own tests expect it: all controllers, and one ready node."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.servers import Cluster, Options, cluster, start_controllers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.binaries import Binaries

CONTROLLERS: Final = (
    "*",
    # Both would act on a node that sends no heartbeat.
    "-node-lifecycle-controller",
    "-taint-eviction-controller",
)
_ROOM: Final = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
NODE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "node-1"}},
    "status": {
        "capacity": _ROOM,
        "allocatable": _ROOM,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    },
}


@contextlib.contextmanager
def control_plane(
    binaries: Binaries, folder: Path, *, plugins: bool, resync: str
) -> Iterator[Cluster]:
    """A control plane, ready; the logs of its servers stay in the folder.

    ``resync`` is the interval in which the quota controller recounts everything.
    """
    with cluster(binaries, Options(plugins=plugins)) as made:
        try:
            start_controllers(made, CONTROLLERS, f"--resource-quota-sync-period={resync}")
            done = made.kubectl("create", "--filename", "-", stdin=NODE)
            assert done.returncode == 0, done.stderr
            yield made
        finally:
            for log in made.folder.glob("*.log"):
                shutil.copy(log, folder)
