"""What the figures depend on: the machine, the versions, the disk's and the processor's pace."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import review
from bench.places import ROOT

if TYPE_CHECKING:
    from bench.database import Server

LIBRARIES: Final = ("django", "djangorestframework", "granian", "psycopg", "orjson", "msgspec")
WRITES: Final = 200
READS: Final = 2000


def describe(folder: Path, server: Server, client: str) -> dict[str, str | float]:
    """The header of a run; ``folder`` is on the disk that the database uses."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "revision": _revision(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "libraries": ", ".join(f"{name} {_version(name)}" for name in LIBRARIES),
        "database": server.version(),
        "load client": client,
        "fdatasync us": round(fdatasync(folder), 1),
        "json.loads us": round(json_loads(), 1),
    }


def fdatasync(folder: Path) -> float:
    """Median microseconds to write 8 kB and have the disk keep them."""
    path, block, times = folder / "fdatasync", b"\0" * 8192, []
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for _ in range(WRITES):
            begin = time.perf_counter()
            os.pwrite(descriptor, block, 0)
            os.fdatasync(descriptor)
            times.append(time.perf_counter() - begin)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(times) * 1e6


def json_loads() -> float:
    """Mean microseconds to read the review with the standard library: how fast the core is now."""
    body = review.fresh()
    begin = time.perf_counter()
    for _ in range(READS):
        json.loads(body)
    return (time.perf_counter() - begin) / READS * 1e6


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _revision() -> str:
    words = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return done.stdout.strip() or "unknown"
