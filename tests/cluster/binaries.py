"""Locates the test cluster's programs; builds and starts nothing."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KUBERNETES: Final = "v1.36.3"
"""The release whose behaviour the engine follows."""
BUILT: Final = ("kube-apiserver", "kube-controller-manager", "etcd", "kubectl")
"""The folder that ``tests.cluster.build`` fills."""


@dataclass(frozen=True)
class Binaries:
    """The programs of one test cluster; without a controller manager nothing is resynced."""

    apiserver: Path
    etcd: Path
    kubectl: Path
    controller_manager: Path | None = None


def cache() -> Path:
    """The folder of locally built programs: outside any checkout."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "gatehouse" / "cluster" / KUBERNETES


def folders() -> list[Path]:
    """The folders to search, in this order; the ecosystem's own convention comes first."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return [*([Path(assets)] if assets else []), cache()]


def find() -> Binaries | None:
    """The programs, if all required ones exist."""
    apiserver, etcd, kubectl = _find("kube-apiserver"), _find("etcd"), _find("kubectl")
    if not (apiserver and etcd and kubectl):
        return None
    return Binaries(apiserver, etcd, kubectl, _find("kube-controller-manager"))


def missing() -> list[str]:
    """The names of missing programs, including the optional one."""
    return [name for name in BUILT if not _find(name)]


def _find(name: str) -> Path | None:
    """Programs that differ by version are never taken from the path."""
    for folder in folders():
        if os.access(folder / name, os.X_OK):
            return folder / name
    on_path = shutil.which(name) if name in {"etcd", "kubectl"} else None
    return Path(on_path) if on_path else None
