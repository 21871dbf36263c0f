"""Where the test cluster's programs are: nothing is built or started here."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KUBERNETES: Final = "v1.36.3"
"""The release whose behaviour the engine follows."""
BUILT: Final = ("kube-apiserver", "kube-controller-manager", "etcd", "kubectl")
"""What ``tests.cluster.build`` makes."""


@dataclass(frozen=True)
class Binaries:
    """The programs of one test cluster; without a controller manager nothing is resynced."""

    apiserver: Path
    etcd: Path
    kubectl: Path
    controller_manager: Path | None = None


def cache() -> Path:
    """Where programs that were built here are kept: outside any checkout."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "gatehouse" / "cluster" / KUBERNETES


def folders() -> list[Path]:
    """Where to look, in this order; the first convention is the ecosystem's own."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return [*([Path(assets)] if assets else []), cache()]


def find() -> Binaries | None:
    """The programs, if there are all that are needed."""
    apiserver, etcd, kubectl = _find("kube-apiserver"), _find("etcd"), _find("kubectl")
    if not (apiserver and etcd and kubectl):
        return None
    return Binaries(apiserver, etcd, kubectl, _find("kube-controller-manager"))


def missing() -> list[str]:
    """The names of those that cannot be found, the optional one among them."""
    return [name for name in BUILT if not _find(name)]


def _find(name: str) -> Path | None:
    """The programs that tell versions apart are never taken from the path."""
    for folder in folders():
        if os.access(folder / name, os.X_OK):
            return folder / name
    on_path = shutil.which(name) if name in {"etcd", "kubectl"} else None
    return Path(on_path) if on_path else None
