"""``python -m tests.upstream.build``: builds Kubernetes' own tests once, beside the test cluster's
programs.

Exit codes are those of ``tests.cluster.build``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.cluster import build as servers
from tests.cluster.binaries import DEFAULT, RELEASES, cache

PROGRAM: Final = "e2e.test"
"""Kubernetes' own name of the program of its tests."""
SOURCE: Final = Path(__file__).with_name("suite_test.go")


def find() -> Path | None:
    """The program, if it has been built."""
    program = cache() / PROGRAM
    return program if os.access(program, os.X_OK) else None


def build() -> None:
    """Build the program unless it exists; concurrent builds wait for each other."""
    with servers.alone(DEFAULT):
        if found := find():
            servers.say(f"all there: {found}")
            return
        if not shutil.which("go"):
            raise servers.UnavailableError("there is no Go; from Debian: apt-get install golang-go")
        began = time.monotonic()
        servers.say(f"building the tests of Kubernetes {RELEASES[DEFAULT]} into {cache()}")
        draft = cache() / f".{PROGRAM}.{os.getpid()}"
        try:
            with tempfile.TemporaryDirectory(prefix="gatehouse-build-") as folder:
                shutil.copy(SOURCE, folder)
                servers.write_module(Path(folder), [], RELEASES[DEFAULT])
                flags = servers.link_flags(RELEASES[DEFAULT])
                words = ["test", "-c", "-ldflags", flags, "-o", str(draft), "."]
                servers.run_go(Path(folder), *words)
            draft.replace(cache() / PROGRAM)
        finally:
            draft.unlink(missing_ok=True)
        size = (cache() / PROGRAM).stat().st_size // 1_000_000
        servers.say(f"built {PROGRAM}: {time.monotonic() - began:.0f} s, {size} MB")


def main() -> int:
    """Build and report the result; returns the exit code."""
    # Also ends Go, and leaves only a finished program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        build()
    except servers.UnavailableError as error:
        servers.say(f"CANNOT BE BUILT HERE: {error}")
        return servers.UNAVAILABLE
    except (servers.BuildError, subprocess.TimeoutExpired) as error:
        servers.say(f"FAILED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
