"""``python -m tests.cluster.build``: builds the test cluster's programs once, outside the checkout.

It uses only the ordinary Go client and skips existing programs. It exits with 0 when all programs
exist, with 3 if they cannot be built here (no Go, no module proxy), with 1 if Go failed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.binaries import BUILT, DEFAULT, RELEASES, built, cache, folders, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

UNAVAILABLE: Final = 3
PACKAGES: Final = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "etcd": "go.etcd.io/etcd/server/v3",
}
ETCD: Final = "v3.6.8"
"""The client version with which this release of Kubernetes is built."""
_STAGING: Final = re.compile(r"^\s*(?:replace )?(k8s\.io/[a-z0-9-]+) => \./staging/", re.MULTILINE)
_MODULE: Final = "k8s.io/kubernetes"
_VERSION: Final = "k8s.io/component-base/version"
_PATIENCE: Final = 1800.0


class UnavailableError(Exception):
    """Nothing can be built here: an external tool is missing."""


class BuildError(Exception):
    """Go failed to build it."""


def say(text: str) -> None:
    """Print one line of progress at once: a build takes minutes."""
    sys.stdout.write(f"cluster: {text}\n")
    sys.stdout.flush()


def build(version: str = DEFAULT) -> None:
    """Build missing programs of a version; concurrent builds wait for each other."""
    with alone(version):
        wanted = missing(version)
        if not wanted:
            places = " or ".join(map(str, folders(version)))
            say(f"all there: {', '.join(built(version))} (in {places})")
            return
        if not shutil.which("go"):
            raise UnavailableError("there is no Go; from Debian: apt-get install golang-go")
        began = time.monotonic()
        say(f"building {', '.join(wanted)} of {RELEASES[version]} into {cache(version)}")
        for family in (("etcd",), BUILT[:2], BUILT[2:]):
            _make_family([name for name in family if name in wanted], version)
        say(f"built in {time.monotonic() - began:.0f} s")


@contextmanager
def alone(version: str) -> Iterator[None]:
    cache(version).mkdir(parents=True, exist_ok=True)
    with (cache(version) / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make_family(names: list[str], version: str) -> None:
    """Build programs of one module: other modules' requirements would change all versions."""
    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="gatehouse-build-") as folder:
        packages = [PACKAGES[name] for name in names]
        if names == ["etcd"]:
            _write_etcd_module(Path(folder), packages)
        else:
            write_module(Path(folder), packages, RELEASES[version])
        for name in names:
            _make(name, Path(folder), version)


def _write_etcd_module(folder: Path, packages: list[str]) -> None:
    # Without the language version, Go would load the whole module graph.
    lines = [
        "module gatehouse.test/etcd",
        "go 1.24.0",
        f"require {packages[0]} {ETCD}",
        f"tool {packages[0]}",
    ]
    (folder / "go.mod").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    _tidy(folder)


def write_module(folder: Path, packages: list[str], release: str) -> None:
    """Write our own ``go.mod`` that takes Kubernetes' parts at the versions it names."""
    say("fetching the list of modules")
    try:
        text = run_go(folder, "mod", "download", "-json", f"{_MODULE}@{release}")
    except BuildError as error:
        raise UnavailableError(f"Go cannot fetch {_MODULE} {release}: {error}") from error
    fetched = json.loads(text)
    own = Path(fetched["GoMod"]).read_text(encoding="utf-8")
    (folder / "go.mod").write_text(module_text(own, packages, release), encoding="utf-8")
    _tidy(folder)


def _tidy(folder: Path) -> None:
    try:
        run_go(folder, "mod", "tidy")
    except BuildError as error:
        raise UnavailableError(f"Go cannot fetch the modules: {error}") from error


def module_text(kubernetes: str, packages: list[str], release: str) -> str:
    """Our ``go.mod``, from Kubernetes' own: each staging folder becomes its published module."""
    language = re.search(r"^go (\S+)$", kubernetes, re.MULTILINE)
    assert language
    staging = f"v0.{release.partition('.')[2]}"
    lines = [
        "module gatehouse.test/cluster",
        f"go {language[1]}",
        f"require {_MODULE} {release}",
    ]
    lines += [
        f"replace {part} => {part} {staging}" for part in sorted(_STAGING.findall(kubernetes))
    ]
    lines += [f"tool {package}" for package in packages]
    return "\n\n".join(lines) + "\n"


def _make(name: str, folder: Path, version: str) -> None:
    """Build one program beside its destination, so that an aborted build leaves no partial file."""
    began = time.monotonic()
    say(f"building {name}")
    target = cache(version) / name
    draft = target.with_name(f".{name}.{os.getpid()}")
    try:
        flags = link_flags(RELEASES[version])
        run_go(folder, "build", "-ldflags", flags, "-o", str(draft), PACKAGES[name])
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    size = target.stat().st_size // 1_000_000
    say(f"built {name}: {time.monotonic() - began:.0f} s, {size} MB")


def link_flags(release: str) -> str:
    """Link without debug tables; without a version a server calls itself v0.0.0."""
    major, minor, _ = release.removeprefix("v").split(".")
    version = {"gitVersion": release, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X {_VERSION}.{key}={text}" for key, text in version.items())])


def run_go(folder: Path, *words: str) -> str:
    # The user's workspace or flags would change the build.
    around: dict[str, Any] = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod -buildvcs=false"}
    done = subprocess.run(  # noqa: S603 - our own words
        ["go", *words],  # noqa: S607 - the user's Go
        cwd=folder,
        env=around,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    if done.returncode:
        raise BuildError((done.stderr.strip() or done.stdout.strip())[-2000:])
    return done.stdout


def main(words: list[str] | None = None) -> int:
    """Build and report the result; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.build", description=__doc__)
    parser.add_argument(
        "versions", nargs="*", help=f"of {', '.join(RELEASES)}; without any: {DEFAULT}"
    )
    versions = parser.parse_args(words).versions or [DEFAULT]
    if unknown := [version for version in versions if version not in RELEASES]:
        parser.error(f"unknown version: {', '.join(unknown)}")
    # Also ends Go, and leaves only finished programs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for version in versions:
            build(version)
    except UnavailableError as error:
        say(f"CANNOT BE BUILT HERE: {error}")
        return UNAVAILABLE
    except (BuildError, subprocess.TimeoutExpired) as error:
        say(f"FAILED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
