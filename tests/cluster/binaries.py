"""Locates the test cluster's programs; builds and starts nothing."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT: Final = "1.36"
RELEASES: Final = {"1.35": "v1.35.4", DEFAULT: "v1.36.3", "1.37": "v1.37.2"}
"""The releases whose behaviour the engine follows, by version."""
BUILT: Final = ("kube-apiserver", "kube-controller-manager", "etcd", "kubectl")
"""The programs of the default version."""
_OWN: Final = ("kube-apiserver",)
"""The programs of another version; it shares etcd and kubectl with the default."""


@dataclass(frozen=True)
class Binaries:
    """The programs of one test cluster; without a controller manager nothing is resynced."""

    apiserver: Path
    etcd: Path
    kubectl: Path
    controller_manager: Path | None = None


def cache(version: str = DEFAULT) -> Path:
    """The folder of locally built programs, which the build fills: outside any checkout."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "gatehouse" / "cluster" / RELEASES[version]


def folders(version: str = DEFAULT) -> list[Path]:
    """The folders to search, in this order; the ecosystem's own convention comes first."""
    if version != DEFAULT:
        # Nothing says of which version the programs in another folder are.
        return [cache(version)]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return [*([Path(assets)] if assets else []), cache()]


def find(version: str = DEFAULT) -> Binaries | None:
    """The programs, if all required ones exist."""
    apiserver = _find("kube-apiserver", version)
    etcd, kubectl = _find("etcd"), _find("kubectl")
    if not (apiserver and etcd and kubectl):
        return None
    return Binaries(apiserver, etcd, kubectl, _find("kube-controller-manager", version))


def missing(version: str = DEFAULT) -> list[str]:
    """The names of missing programs, including the optional one."""
    return [name for name in built(version) if not _find(name, version)]


def built(version: str) -> tuple[str, ...]:
    """The programs that are built of a version."""
    return BUILT if version == DEFAULT else _OWN


def _find(name: str, version: str = DEFAULT) -> Path | None:
    """Programs that differ by version are never taken from the path."""
    for folder in folders(version):
        if os.access(folder / name, os.X_OK):
            return folder / name
    on_path = shutil.which(name) if name in {"etcd", "kubectl"} else None
    return Path(on_path) if on_path else None
