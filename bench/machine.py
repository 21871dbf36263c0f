"""The machine: folders, programs, the CPU and memory of processes, and the header of a run."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import time
import timeit
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench import review

if TYPE_CHECKING:
    from bench.database import Databases

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
BUILT: Final = RESULTS / "peers"
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
LIBRARIES: Final = ("django", "djangorestframework", "uvicorn", "psycopg", "orjson", "msgspec")
WRITES: Final = 200
READS: Final = 2000


class MissingError(RuntimeError):
    """A program that the benchmark cannot do without is not here."""


def surroundings(**more: str) -> dict[str, str]:
    """Our environment without anybody's settings, and with the named ones."""
    own = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    return {**own, "GATEHOUSE_ENV_FILE": os.devnull, **more}


class Usage(NamedTuple):
    """What a process has used: CPU in seconds since its start, memory in bytes now."""

    cpu: float
    resident: int


def usage_of(process: int) -> Usage:
    """Read it from /proc; zeros when the process is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return Usage(0.0, 0)
    words = text.rpartition(")")[2].split()
    return Usage((int(words[11]) + int(words[12])) / TICKS, int(words[21]) * PAGE)


def share_of(process: int) -> int:
    """Bytes of memory of a process; a page that n processes share counts as an nth in each.

    The sum over all processes of a server is the memory that it takes, as its container shows it.
    Zero when the process is gone.
    """
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8")
    except OSError:
        return 0
    shares = re.search(r"^Pss: +(\d+) kB$", text, re.MULTILINE)
    return int(shares[1]) * 1024 if shares else 0


def describe(folder: Path, databases: Databases) -> dict[str, str | float]:
    """The header of a run; ``folder`` is on the disk that the database uses."""
    read = partial(json.loads, review.fresh())
    installed = {each.name.lower(): each.version for each in importlib.metadata.distributions()}
    processors = Path("/proc/cpuinfo").read_text("utf-8").partition("model name")[2]
    return {
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "revision": git("rev-parse", "--short", "HEAD"),
        "processor": processors.partition("\n")[0].strip("\t: ") or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory GiB": round(PAGE * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "libraries": ", ".join(f"{name} {installed.get(name, 'absent')}" for name in LIBRARIES),
        "database": databases.version(),
        "load client": "Go" if shutil.which("go") else "Python",
        "fdatasync us": round(fdatasync(folder), 1),
        "json.loads us": round(timeit.timeit(read, number=READS) / READS * 1e6, 1),
    }


def fdatasync(folder: Path) -> float:
    """Median microseconds to write 8 kB and have the disk keep them."""
    with (folder / "fdatasync").open("wb") as file:

        def flush() -> None:
            os.pwrite(file.fileno(), b"\0" * 8192, 0)
            os.fdatasync(file.fileno())

        return statistics.median(timeit.repeat(flush, number=1, repeat=WRITES)) * 1e6


def git(*words: str) -> str:
    """What Git prints about this checkout; "unknown" where it is none."""
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return done.stdout.strip() or "unknown"
